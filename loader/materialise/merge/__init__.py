"""Bringing tables of the warehouse up to date, and publishing the result."""
