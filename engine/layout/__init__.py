"""What the graph view shows and where: a module folded into groups, and layers of what is open. Nothing here draws."""
