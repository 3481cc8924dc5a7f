"""The walk kernel: event headers, checksums and transactions of a block of the log. It does not read row images.

Header: MySQL internals, "Binary Log Event Header". A transaction runs from its GTID event to XID, COMMIT or ROLLBACK.
Without a GTID event it starts with BEGIN. A statement outside BEGIN is a transaction of its own. MariaDB's GTID event
replaces BEGIN, unless its flag says that a single statement follows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import (
    COMMIT,
    FLAG_IGNORABLE,
    FORMAT,
    GTID,
    HEADER,
    LOADS,
    MAP,
    MARIADB_GTID,
    PREPARES,
    QUERIES,
    QUERY,
    REFUSED,
    ROWS,
    SKIPPED,
    TAGGED,
    WRAPS,
)
from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.native.crc import crc32
from loader.binlog.transaction_control import (
    BEGINS,
    COMMITS,
    CUT,
    DECIDES,
    ENDS_WORK,
    ROLLS_BACK,
    STATEMENT,
    STRANGE,
    commit_time,
    control_of,
    same,
    tagged_commit_time,
)  # fmt: skip
from loader.binlog.values.digits import little

Ints = NDArray[np.int64]

(
    MORE,
    NEW_TABLE,
    STOPPED,
    BAD_CHECKSUM,
    BAD_HEADER,
    NO_TABLE_MAP,
    NO_TRANSACTION,
    BAD_ORDER,
    MANY_MAPS,
    XA,
    OUTER,
    NESTED,
) = range(12)
"""Statuses of the walk.

MORE: the block is used up, except for a truncated event at its end.
NEW_TABLE: the table map at AT is not registered.
STOPPED: the event at AT has a type that is not supported.
XA: the event at AT is an XA statement that no known server logs.
OUTER: the event at AT holds compressed events, or is the first fragment of an event. The block may hold only its start.
NESTED: an event like OUTER is inside another one.
MANY_MAPS: the arrays of table ids are full.
All others: the log is damaged at AT.
"""

(
    AT,
    OPEN,
    BEGIN,
    START,
    COMMITTED,
    ROW_COUNT,
    TRANSACTIONS,
    STATEMENTS,
    MAPS,
    FIRST,
    GROWN,
    SERVER,
    MARKED,
    VOID,
) = range(14)
"""The walk's state.

AT: offset in the block of the next event.
OPEN: 1 inside a transaction.
BEGIN: 1 after its BEGIN.
START: its first byte in the file.
COMMITTED: its commit time in microseconds since 1970; 0 if not known.
ROW_COUNT, TRANSACTIONS, STATEMENTS: entries written.
MAPS: table ids in use.
FIRST: number of the transaction in the first entry of the array.
GROWN: bytes that the transaction up to AT would be longer without compression and fragments.
SERVER: server id in the header of its first event.
MARKED: 1 if it has a row event of a marker table.
VOID: 1 if its statement has no effect, see _is_void.
"""

STATE = 14

R_OFFSET, R_SIZE, R_KIND, R_TABLE, R_TRANSACTION, R_EVENT, R_LEAD, R_INNER, R_FLAGS = range(9)
"""Fields of a row event.

R_OFFSET: offset of its first byte: in the file, or (R_INNER) in the expanded bytes of the outer event.
R_SIZE: bytes without checksum.
R_KIND: event type.
R_TABLE: number of its program, or UNCAPTURED, MARKER, UNSTAGED or at most WATCHED.
R_TRANSACTION: number of its transaction.
R_EVENT: offset in the file of the event, or of the outer event that holds it.
R_LEAD: what to add to R_OFFSET for its offset in the file if nothing in the transaction were compressed or in
    fragments. Row offsets are measured in this way.
R_INNER: 1 inside an outer event.
R_FLAGS: flags of the row event, such as SQL_FOREIGN_KEYS.
"""

T_START, T_END, T_COMMITTED, T_OUTCOME, T_SERVER, T_MARKED = range(6)
"""Fields of a transaction: start and end offset in the file; commit time in microseconds; outcome; server id; 1 if it
has a row event of a marker table."""
DONE, ROLLED_BACK, PREPARED, CUT_OFF = range(4)
"""Outcomes. PREPARED: the first phase of an XA transaction ended; a later XA COMMIT or XA ROLLBACK decides.
CUT_OFF: the log is damaged before the transaction's end; the kernel never writes it."""
S_OFFSET, S_SIZE, S_TRANSACTION, S_BODY, S_BEGUN = range(5)
"""Fields of a statement that is not transaction control, or of the XA_PREPARE event of a prepared transaction.

S_OFFSET: offset in the file of its event, or of the outer event that holds it.
S_SIZE: bytes without checksum.
S_TRANSACTION: number of its transaction.
S_BODY: index in LogIndex.bodies if it was compressed; else -1.
S_BEGUN: 1 behind the BEGIN of its transaction.
"""

WIDTHS = (9, 6, 5)

UNCAPTURED, MARKER, UNSTAGED, WATCHED = -1, -2, -3, -4
"""Values of R_TABLE instead of a program: the table is not captured; the table marks transactions to skip; the row
event is not staged, since the columns of its table are not known; WATCHED and less: the table is not captured, but its
changes may change captured tables."""
NO_FOREIGN_KEY_CHECKS, SQL_FOREIGN_KEYS = 0x02, 0x10
"""Flags of a row event (NO_FOREIGN_KEY_CHECKS_F and USE_SQL_FOREIGN_KEY_F of `Rows_event`). The first: the session had
foreign_key_checks=0. The second: MySQL 9.6 or later logged the rows that foreign keys changed with these rows."""
FIRST_EVENT = 4  # offset of the first event in a file, behind the magic
_STATEMENT_END = 1
_XID_BYTES = 8
_DUMMY_TABLE = 0xFFFFFF  # a row event with this table id belongs to no table: it only ends a statement
_MARIADB_FLAGS = 12  # offset of the flags in the body of a MariaDB GTID event
_COMMIT_ID, _XA_FLAGS = 0x02, 0xC0
_START_ALTER, _ROLLBACK_ALTER = 0x02, 0x08


@part
def _start(buf: Bytes, at: int, state: Ints, offset: int, committed: np.int64, begun: int) -> None:
    """Open the transaction whose first event starts at `at`."""
    state[OPEN] = 1
    state[START] = offset
    state[COMMITTED] = committed
    state[BEGIN] = begun
    state[GROWN] = 0
    state[SERVER] = np.int64(little(buf, at + 5, 4))
    state[MARKED] = 0
    state[VOID] = 0


@part
def _is_void(buf: Bytes, body: int, end: int) -> int:
    """Return 1 if the flags of a MariaDB GTID event say that its statement has no effect; else 0.

    With binlog_alter_two_phase=ON, MariaDB logs the same ALTER TABLE twice: where it begins and where it ends. Only the
    COMMIT ALTER has an effect, from its position on. Format: `Gtid_log_event` (log_event.cc): number 8, domain 4,
    flags 1; commit id 8 if flagged; XID (format 4, lengths 1 and 1, its bytes) if flagged; more flags 1. Checked on
    10.11 and 11.8.
    """
    flags = np.int64(buf[body + _MARIADB_FLAGS])
    at = body + _MARIADB_FLAGS + 1
    if flags & _COMMIT_ID:
        at += 8
    if flags & _XA_FLAGS:
        if at + 6 > end:
            return 0
        at += 6 + np.int64(buf[at + 4]) + np.int64(buf[at + 5])
    return 1 if at < end and np.int64(buf[at]) & (_START_ALTER | _ROLLBACK_ALTER) else 0


@part
def _begin(buf: Bytes, at: int, end: int, offset: int, action: int, state: Ints) -> int:
    """Open the transaction of a GTID event; return a status."""
    if state[OPEN]:
        return BAD_ORDER
    if action == GTID:
        _start(buf, at, state, offset, commit_time(buf, at, end), 0)
    elif action == TAGGED:
        committed = tagged_commit_time(buf, at, end)
        if committed < 0:
            return BAD_HEADER
        _start(buf, at, state, offset, committed, 0)
    elif at + HEADER + 13 > end:
        return BAD_HEADER
    else:
        single = buf[at + HEADER + 12] & 1
        _start(buf, at, state, offset, np.int64(0), 0 if single else 1)
        state[VOID] = _is_void(buf, at + HEADER, end)
    return MORE


@part
def _find_table(
    buf: Bytes, start: int, end: int, slots: Ints, hashes: NDArray[np.uint32], spans: Ints, known: Bytes
) -> int:
    """Return the index of the registered table map with these bytes; -1 if there is none. Table ids are ignored."""
    body = start + HEADER + 6
    digest = crc32(buf, body, end)
    slot = np.int64(digest) % len(slots)
    while slots[slot] >= 0:
        index = slots[slot]
        first = spans[index]
        if hashes[index] == digest and same(buf, body, end, known[first : spans[index + 1]]):
            return index
        slot = (slot + 1) % len(slots)
    return -1


@part
def _map(buf: Bytes, at: int, program: np.int64, state: Ints, ids: Ints, tables: Ints) -> int:
    """Store which program a table id means; return a status."""
    if state[MAPS] == len(ids):
        return MANY_MAPS
    ids[state[MAPS]] = np.int64(little(buf, at + HEADER, 6))
    tables[state[MAPS]] = program
    state[MAPS] += 1
    return MORE


@part
def _close(state: Ints, transactions: Ints, end: int, seconds: np.int64, outcome: int) -> None:
    row = transactions[state[TRANSACTIONS] - state[FIRST]]
    row[T_START] = state[START]
    row[T_END] = end
    row[T_COMMITTED] = state[COMMITTED] if state[COMMITTED] else seconds * 1000000
    row[T_OUTCOME] = outcome
    row[T_SERVER] = state[SERVER]
    row[T_MARKED] = state[MARKED]
    state[TRANSACTIONS] += 1
    state[OPEN] = 0
    state[BEGIN] = 0
    state[MAPS] = 0


@part
def _row_event(buf: Bytes, at: int, end: int, offset: int, state: Ints, ids: Ints, tables: Ints, rows: Ints) -> int:
    """Store a row event; return a status, MORE if there is no error."""
    if not state[OPEN] or not state[BEGIN]:
        return NO_TRANSACTION
    if at + HEADER + 8 > end:
        return BAD_HEADER
    table_id = np.int64(little(buf, at + HEADER, 6))
    flags = np.int64(little(buf, at + HEADER + 6, 2))
    if table_id != _DUMMY_TABLE:
        found = state[MAPS] - 1
        while found >= 0 and ids[found] != table_id:
            found -= 1
        if found < 0:
            return NO_TABLE_MAP
        row = rows[state[ROW_COUNT]]
        row[R_OFFSET] = offset
        row[R_SIZE] = end - at
        row[R_KIND] = buf[at + 4]
        row[R_TABLE] = tables[found]
        if tables[found] == MARKER:
            state[MARKED] = 1
        row[R_TRANSACTION] = state[TRANSACTIONS]
        row[R_EVENT] = offset
        row[R_LEAD] = state[GROWN]
        row[R_INNER] = 0
        row[R_FLAGS] = flags
        state[ROW_COUNT] += 1
    if flags & _STATEMENT_END:
        state[MAPS] = 0
    return MORE


@part
def _note(at: int, end: int, offset: int, state: Ints, statements: Ints) -> None:
    row = statements[state[STATEMENTS]]
    row[S_OFFSET] = offset
    row[S_SIZE] = end - at
    row[S_TRANSACTION] = state[TRANSACTIONS]
    row[S_BODY] = -1
    row[S_BEGUN] = state[BEGIN]
    state[STATEMENTS] += 1


@part
def _query(
    buf: Bytes, at: int, end: int, offset: int, after: int, state: Ints, transactions: Ints, statements: Ints
) -> int:
    """Handle a QUERY event: open or close a transaction, or store a statement; return a status."""
    control = STATEMENT if buf[at + 4] != QUERY else control_of(buf, at, end)
    seconds = np.int64(little(buf, at, 4))
    if control == CUT:
        return BAD_HEADER
    if control == STRANGE:
        return XA
    if control == BEGINS:
        if state[OPEN] and state[BEGIN]:
            return BAD_ORDER
        if not state[OPEN]:
            _start(buf, at, state, offset, np.int64(0), 1)
        state[BEGIN] = 1
        return MORE
    if control == COMMITS or control == ROLLS_BACK or control == ENDS_WORK:
        if not state[OPEN]:
            return BAD_ORDER
        if control != ENDS_WORK:
            _close(state, transactions, after, seconds, ROLLED_BACK if control == ROLLS_BACK else DONE)
        return MORE
    if not state[OPEN]:
        _start(buf, at, state, offset, np.int64(0), 0)
    if not state[VOID]:
        _note(at, end, offset, state, statements)
    # The GTID event of MariaDB's XA COMMIT has no flag for a single statement, so BEGIN is set here.
    if control == DECIDES or not state[BEGIN]:
        _close(state, transactions, after, seconds, DONE)
    return MORE


@part
def _prepare(
    buf: Bytes, at: int, end: int, offset: int, after: int, state: Ints, transactions: Ints, statements: Ints
) -> int:
    """Close a transaction at its XA_PREPARE event: prepared, or done if the event says one phase; return a status."""
    if not state[OPEN] or not state[BEGIN]:
        return BAD_ORDER
    if at + HEADER + 13 > end:
        return BAD_HEADER
    one_phase = buf[at + HEADER] != 0
    if not one_phase:
        _note(at, end, offset, state, statements)
    _close(state, transactions, after, np.int64(little(buf, at, 4)), DONE if one_phase else PREPARED)
    return MORE


@part
def _commit(buf: Bytes, at: int, end: int, after: int, state: Ints, transactions: Ints) -> int:
    """Close a transaction at its XID event; return a status."""
    if not state[OPEN]:
        return BAD_ORDER
    if at + HEADER + _XID_BYTES > end:
        return BAD_HEADER
    _close(state, transactions, after, np.int64(little(buf, at, 4)), DONE)
    return MORE


@kernel(
    "int64(uint8[::1], int64, int64, int64, int64, int64, uint8[::1], int64[::1], int64[:,::1], int64[:,::1],"
    " int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], uint32[::1], int64[::1], uint8[::1], int64[::1])"
)
def walk(
    buf: Bytes, size: int, base: int, count_from: int, count_to: int, checksum: int, classes: Bytes, state: Ints,
    rows: Ints, transactions: Ints, statements: Ints, counts: Ints, ids: Ints, tables: Ints,
    slots: Ints, hashes: NDArray[np.uint32], spans: Ints, known: Bytes, programs: Ints,
) -> int:  # fmt: skip
    """Walk buf[state[AT]:size]; return a status.

    Args:
        buf: the block.
        size: bytes used in `buf`.
        base: offset in the file of buf[0].
        count_from: events that start at or behind this file offset are counted. Others belong to another range.
        count_to: events that start before this file offset are counted.
        checksum: bytes of CRC-32 at the end of each event, 4 or 0.
        classes: what to do with each event type, see constants.CLASSES.
        state: the walk's state.
        rows: output, with room for one entry per 19 bytes of the block.
        transactions: the same.
        statements: the same.
        counts: output: events by type, then their bytes.
        ids: table ids in use.
        tables: the program of each table id in use.
        slots: with `hashes`, `spans`, `known` and `programs`, the registered table maps as a hash table of their bytes.
        hashes: CRC-32 of each table map.
        spans: where each table map starts in `known`.
        known: bytes of the table maps.
        programs: number of the program of each table map.
    """
    while True:
        at = state[AT]
        if at + HEADER > size:
            return MORE
        length = np.int64(little(buf, at + 9, 4))
        if length < HEADER + checksum:
            return BAD_HEADER
        kind = buf[at + 4]
        action = classes[kind]
        if action == WRAPS:
            return OUTER
        if at + length > size:
            return MORE
        end = at + length - checksum
        offset = base + at
        # The server sets a flag in the first event after it computes the checksum. `read_format` has checked it.
        if checksum and offset != FIRST_EVENT and np.uint64(crc32(buf, at, end)) != little(buf, end, 4):
            return BAD_CHECKSUM
        status = MORE
        if action == ROWS:
            status = _row_event(buf, at, end, offset, state, ids, tables, rows)
        elif action == MAP:
            index = _find_table(buf, at, end, slots, hashes, spans, known)
            status = NEW_TABLE if index < 0 else _map(buf, at, programs[index], state, ids, tables)
        elif action == GTID or action == TAGGED or action == MARIADB_GTID:
            status = _begin(buf, at, end, offset, action, state)
        elif action == QUERIES or action == LOADS:
            status = _query(buf, at, end, offset, base + at + length, state, transactions, statements)
        elif action == PREPARES:
            status = _prepare(buf, at, end, offset, base + at + length, state, transactions, statements)
        elif action == COMMIT:
            status = _commit(buf, at, end, base + at + length, state, transactions)
        elif action == REFUSED or (action != SKIPPED and action != FORMAT):
            if action == REFUSED or not (np.int64(little(buf, at + 17, 2)) & FLAG_IGNORABLE):
                return STOPPED
        if status != MORE:
            return status
        if count_from <= offset < count_to:
            counts[kind] += 1
            counts[256] += length
        state[AT] += length
