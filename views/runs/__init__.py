"""Runs on attached devices and on CPU devices, and what production compilers make of a plan."""
