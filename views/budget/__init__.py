"""What another budget would bring."""
