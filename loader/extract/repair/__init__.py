"""Extracting staged intervals again: to compare them, to restore files, and to backfill incomplete tables."""
