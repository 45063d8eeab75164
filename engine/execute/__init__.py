"""Running modules on devices, in processes of their own, and comparing numbers."""
