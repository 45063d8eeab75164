"""What runs and what ran: progress, cancel, and errors with what to do."""
