"""Reduces staged records to the last version of each row."""
