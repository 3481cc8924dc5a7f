"""Reads all of a server's log with python-mysql-replication: `python replication.py PORT NAME`; prints the changes."""

from __future__ import annotations

import sys

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

if __name__ == "__main__":
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": int(sys.argv[1]), "user": "root", "passwd": ""},
        server_id=77,
        log_file=sys.argv[2],
        log_pos=4,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    print(sum(len(event.rows) for event in stream))
