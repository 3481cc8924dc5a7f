"""Column values of row events as staged text."""
