"""The Graph tab: modules as layers of nodes that open."""
