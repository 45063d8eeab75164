"""Orders for computations: schedulers, budgets, bounds, and why each instruction is where it is."""
