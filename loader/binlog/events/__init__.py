"""Event formats, except row events."""
