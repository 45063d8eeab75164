"""Reading and writing HLO through XLA's own parser and printer."""
