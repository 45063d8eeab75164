"""What a decomposition gains, in picoseconds."""
