"""Comparing tables with a replay of the log, and correcting them."""
