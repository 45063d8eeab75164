"""What will be drawn of a graph: what is open, and where it lies."""
