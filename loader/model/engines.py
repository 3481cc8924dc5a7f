"""Engines whose tables cannot be followed by the log."""

NO_ROWS = "a table of this engine keeps no rows of its own, or others change them, so the log does not have its rows"
"""Why tables of FOREIGN_ENGINES are not supported. Loading them again does not help.

CSV stores six digits of a FLOAT, and the log has all digits. Others may replace its file. COLUMNSTORE, NDB, OQGRAPH, S3
and SPHINX keep the rows outside the server, where bulk loads, other servers and other tables change them. ColumnStore
may store an empty text as NULL, and NDB logs updates as inserts (`ndb_log_update_as_write`).
"""

FOREIGN_ENGINES = {
    "BLACKHOLE",
    "COLUMNSTORE",
    "CONNECT",
    "CSV",
    "FEDERATED",
    "MERGE",
    "MRG_MYISAM",
    "NDB",
    "NDBCLUSTER",
    "OQGRAPH",
    "S3",
    "SPHINX",
    "SPIDER",
}
"""Engines in upper case, by all their names."""
