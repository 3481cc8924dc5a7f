"""Compares tables with a replay of the log, and corrects them."""
