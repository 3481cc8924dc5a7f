"""Finding a position in a log."""
