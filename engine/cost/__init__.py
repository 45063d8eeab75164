"""What instructions cost on a machine: compute, transfers over links, and costs imported from elsewhere."""
