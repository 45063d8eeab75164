"""The module as HLO text: coloured, searched, and linked with the selection."""
