"""Applies initial loads: staged rows become the rows of a table, in one commit."""
