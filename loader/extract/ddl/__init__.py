"""Statements of an interval that concern a table as a whole."""
