"""Listings of events and staged records, as text and as JSON lines."""
