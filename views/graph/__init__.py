"""The data flow around the selected instruction."""
