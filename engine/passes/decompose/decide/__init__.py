"""Which sites are decomposed, each in which form."""
