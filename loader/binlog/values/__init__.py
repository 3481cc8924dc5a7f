"""Writes column values of row events as staged text."""
