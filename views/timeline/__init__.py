"""The stack of timelines: what is visible, where it lies, how it is drawn, and what mouse and keys do to it."""
