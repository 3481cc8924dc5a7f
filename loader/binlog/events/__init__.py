"""The formats of events, except row events."""
