"""The application: command line, window start, jobs, settings."""
