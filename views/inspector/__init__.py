"""Everything known about the selected instruction."""
