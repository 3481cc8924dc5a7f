"""Intervals that are extracted again: to compare, to restore files, to fill in left-out tables."""
