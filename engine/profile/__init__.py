"""Measured profiles in XProf's XSpace format: what ran on which device, when, and for how long."""
