"""The user's session as a frozen value: modules, plans, variants, and its files."""
