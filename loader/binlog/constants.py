"""Event types and event flags of the binary log, by their names in the server's documentation."""

from __future__ import annotations

import numpy as np

MAGIC = b"\xfebin"
MAGIC_ENCRYPTED = b"\xfd\x62\x69\x6e"
HEADER = 19
"""Bytes of an event header: timestamp 4, type 1, server id 4, size 4, end position 4, flags 2."""

EVENT_NAMES = {
    0: "UNKNOWN", 1: "START_V3", 2: "QUERY", 3: "STOP", 4: "ROTATE", 5: "INTVAR", 6: "LOAD", 7: "SLAVE",
    8: "CREATE_FILE", 9: "APPEND_BLOCK", 10: "EXEC_LOAD", 11: "DELETE_FILE", 12: "NEW_LOAD", 13: "RAND",
    14: "USER_VAR", 15: "FORMAT_DESCRIPTION", 16: "XID", 17: "BEGIN_LOAD_QUERY", 18: "EXECUTE_LOAD_QUERY",
    19: "TABLE_MAP", 20: "PRE_GA_WRITE_ROWS", 21: "PRE_GA_UPDATE_ROWS", 22: "PRE_GA_DELETE_ROWS",
    23: "WRITE_ROWS_V1", 24: "UPDATE_ROWS_V1", 25: "DELETE_ROWS_V1", 26: "INCIDENT", 27: "HEARTBEAT",
    28: "IGNORABLE", 29: "ROWS_QUERY", 30: "WRITE_ROWS", 31: "UPDATE_ROWS", 32: "DELETE_ROWS", 33: "GTID",
    34: "ANONYMOUS_GTID", 35: "PREVIOUS_GTIDS", 36: "TRANSACTION_CONTEXT", 37: "VIEW_CHANGE",
    38: "XA_PREPARE", 39: "PARTIAL_UPDATE_ROWS", 40: "TRANSACTION_PAYLOAD", 41: "HEARTBEAT_V2",
    42: "GTID_TAGGED", 160: "ANNOTATE_ROWS", 161: "BINLOG_CHECKPOINT", 162: "MARIADB_GTID",
    163: "GTID_LIST", 164: "START_ENCRYPTION", 165: "QUERY_COMPRESSED", 166: "WRITE_ROWS_COMPRESSED_V1",
    167: "UPDATE_ROWS_COMPRESSED_V1", 168: "DELETE_ROWS_COMPRESSED_V1", 169: "WRITE_ROWS_COMPRESSED",
    170: "UPDATE_ROWS_COMPRESSED", 171: "DELETE_ROWS_COMPRESSED", 172: "PARTIAL_ROW_DATA",
}  # fmt: skip

QUERY = 2
ROTATE = 4
XID = 16
EXECUTE_LOAD_QUERY = 18
FORMAT_DESCRIPTION = 15
TABLE_MAP = 19
INCIDENT = 26
UPDATE_ROWS = 31
CHANGES = (24, 25, 31, 32, 39)
"""Row events of MySQL that update or delete rows."""
XA_PREPARE = 38
PARTIAL_UPDATE_ROWS = 39
START_ENCRYPTION = 164
PARTIAL_ROW_DATA = 172
HEARTBEATS = (27, 41)

FLAG_IN_USE = 0x0001  # of FORMAT_DESCRIPTION: the server has not closed this file
FLAG_ARTIFICIAL = 0x0020  # the server made the event for this connection: it is not in the file
FLAG_IGNORABLE = 0x0080  # a reader that does not know the event type may skip the event

(
    UNKNOWN, SKIPPED, GTID, MARIADB_GTID, QUERIES, COMMIT, MAP, ROWS, REFUSED, FORMAT, WRAPS, TAGGED, PREPARES,
    LOADS,
) = range(14)  # fmt: skip
"""What the walk does with an event type. WRAPS: the event holds compressed events, or is a fragment of an event."""

CLASSES = np.zeros(256, np.uint8)
CLASSES[list(EVENT_NAMES)] = REFUSED
CLASSES[[3, 4, 5, 9, 11, 13, 14, 17, 27, 28, 29, 35, 36, 37, 41, 160, 161, 163, START_ENCRYPTION]] = SKIPPED
CLASSES[[33, 34]] = GTID
CLASSES[42] = TAGGED
CLASSES[162] = MARIADB_GTID
CLASSES[QUERY] = QUERIES
CLASSES[XID] = COMMIT
CLASSES[TABLE_MAP] = MAP
CLASSES[[23, 24, 25, 30, 31, 32, PARTIAL_UPDATE_ROWS]] = ROWS
CLASSES[FORMAT_DESCRIPTION] = FORMAT
CLASSES[XA_PREPARE] = PREPARES
CLASSES[EXECUTE_LOAD_QUERY] = LOADS
CLASSES[[40, 165, 166, 167, 168, 169, 170, 171, PARTIAL_ROW_DATA]] = WRAPS


def event_name(kind: int) -> str:
    """Return the name of an event type: `WRITE_ROWS`, or `event type 99` for an unknown type."""
    return EVENT_NAMES.get(kind, f"event type {kind}")
