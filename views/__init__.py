"""The window's panes; they draw the session and know the engine, never the application."""
