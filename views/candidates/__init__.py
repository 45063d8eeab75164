"""The collectives of the module with their verdicts: alike sites as one row."""
