"""The line above the timelines: the machine, and the plan of the active variant."""
