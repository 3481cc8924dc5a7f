"""Engines whose tables cannot be followed by the log."""

NO_ROWS = "a table of this engine keeps no rows of its own, or others change them, so the log does not have its rows"
"""Why tables of FOREIGN_ENGINES are not supported. Loading them again does not help.

CSV stores six digits of a FLOAT, and the log has all digits. Others may replace its file.
"""

FOREIGN_ENGINES = {"BLACKHOLE", "CONNECT", "CSV", "FEDERATED", "MERGE", "MRG_MYISAM", "SPIDER"}
"""Engines in upper case, by all their names."""
