"""Forms and tasks of what people start: repairs, replays, and comparisons with the server."""
