"""The kernel that lists the events of a block of log.

It lists events by templates, and rows by their staged lines. It stops at an event without a template, and at one that
only the caller can list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, HEADER, MAP, PARTIAL_UPDATE_ROWS, ROWS, WRAPS
from loader.binlog.listing import templates as t
from loader.binlog.listing.escapes import WIDEST, put_statement
from loader.binlog.listing.fields import put_bytes
from loader.binlog.listing.rows import NO_ROOM, SLACK, put_rows
from loader.binlog.listing.templates import find_template, hash_of, put_slot, room_of_template
from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.native.memory import load64, store64
from loader.binlog.values.digits import little, put_hex, put_unsigned

Ints = NDArray[np.int64]

DONE, FULL, MISSING, OTHER, ENOUGH = range(5)
"""Statuses of the kernel.

DONE: all events that start before `until` are listed, or the next event is not whole.
FULL: the output block is full.
MISSING: the event has no template; its key is in `key`.
OTHER: the event has to be listed by the caller.
ENOUGH: the wanted number of transactions is listed.
"""

AT, OUT, NUMBER, TAKEN, INSIDE, LISTED, COUNT, GTID_END, FIRST_END, KEY_END, HASH = range(11)
"""The kernel's state.

AT: offset of the next event in the block.
OUT: bytes in the output block.
NUMBER: number of the transaction at AT, or of the next one.
TAKEN: row events before AT.
INSIDE: 1 within the transaction.
LISTED: seqno of the newest listed transaction.
COUNT: listed transactions.
GTID_END: bytes of the transaction's GTID in `gtid`; 0 if it has none.
FIRST_END: bytes of the transaction's first event in `first`, without checksum; 0 if it is not a GTID event.
KEY_END, HASH: bytes and hash of the key of an event without template.
"""

STATE = 11

CHECKSUM, ONLY_ROWS, KINDS, LIMIT, JSON = range(5)
"""Options.

CHECKSUM: bytes of checksum at the end of each event.
ONLY_ROWS: 1 to list nothing but row events with a table.
KINDS: operations of the row events to list: 1 inserts, 2 updates, 4 deletes.
LIMIT: most transactions to list; 0 for all.
JSON: 1 for JSON.
"""

OPTIONS = 5

KEY_BYTES = 4096
"""Room for a key. Events with longer keys are OTHER."""

GTID_BYTES = 1024
"""Room for a GTID and for the first event of a transaction."""

_BEGIN = np.frombuffer(b"\0BEGIN", np.uint8).copy()
_COMMIT = np.frombuffer(b"\0COMMIT", np.uint8).copy()
_DASH, _COLON = np.uint8(ord("-")), np.uint8(ord(":"))
_QUERY, _XID, _GTID, _ANONYMOUS, _MARIADB, _ROWS_QUERY, _ANNOTATE = 2, 16, 33, 34, 162, 29, 160
_GTID_LEAST = 49  # bytes of the body of a GTID event up to its first commit time
_HAS_ORIGINAL = 1 << 55
_KEY_HEAD = 4
_NONE = -2


@part
def _put_gtid(gtid: Bytes, block: Bytes, at: int, kind: np.uint8) -> int:
    """Write the GTID of a GTID event; return its length, 0 for other events."""
    body = at + HEADER
    if kind == _MARIADB:
        end = put_unsigned(gtid, 0, little(block, body + 8, 4))
        gtid[end] = _DASH
        end = put_unsigned(gtid, end + 1, little(block, at + 5, 4))
        gtid[end] = _DASH
        return put_unsigned(gtid, end + 1, load64(block, body))
    if kind != _GTID:
        return 0
    end = 0
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            gtid[end] = _DASH
            end += 1
        end = put_hex(gtid, end, block[body + 1 + i])
    gtid[end] = _COLON
    return put_unsigned(gtid, end + 1, load64(block, body + 17))


@part
def _ends_with(block: Bytes, end: int, text: Bytes, least: int) -> bool:
    if end - len(text) < least:
        return False
    for i in range(len(text)):
        if block[end - len(text) + i] != text[i]:
            return False
    return True


@part
def _read_body(block: Bytes, at: int, end: int, kind: np.uint8, values: Ints) -> tuple[int, int]:
    """Read the values in the body of an event. Return the part of it that belongs to its key; BAD for other events."""
    body = at + HEADER
    if kind == _XID and end - body == 8:
        values[t.XID] = np.int64(load64(block, body))
        return end, end
    if (kind == _GTID or kind == _ANONYMOUS) and end - body >= _GTID_LEAST:
        values[t.LAST_COMMITTED] = np.int64(load64(block, body + 26))
        values[t.SEQUENCE] = np.int64(load64(block, body + 34))
        immediate = np.int64(little(block, body + 42, 7))
        original = immediate
        if immediate & _HAS_ORIGINAL:
            if end - body < _GTID_LEAST + 7:
                return BAD, BAD
            immediate ^= _HAS_ORIGINAL
            original = np.int64(little(block, body + 49, 7))
        values[t.IMMEDIATE], values[t.ORIGINAL] = immediate, original
        return end, end
    if kind == _MARIADB and end - body >= 13:
        return body + 12, body + 13
    if kind == _QUERY and (_ends_with(block, end, _BEGIN, body + 13) or _ends_with(block, end, _COMMIT, body + 13)):
        values[t.THREAD] = np.int64(little(block, body, 4))
        values[t.SECONDS] = np.int64(little(block, body + 4, 4))
        return body + 8, end
    if kind == _ROWS_QUERY or kind == _ANNOTATE:
        return end, end
    return (body, end) if CLASSES[kind] == MAP else (BAD, BAD)


@part
def _read_header(block: Bytes, at: int, base: int, size: np.int64, values: Ints) -> None:
    seconds = np.int64(little(block, at, 4))
    values[t.POSITION] = base + at
    values[t.SERVER] = np.int64(little(block, at + 5, 4))
    values[t.SIZE] = size
    values[t.NEXT] = np.int64(little(block, at + 13, 4))
    values[t.TIME] = values[t.TIME_ISO] = seconds * 1000000


@part
def _enter(block: Bytes, at: int, end: int, kind: np.uint8, gtid: Bytes, first: Bytes, state: Ints) -> None:
    """Note the first event of a transaction."""
    state[INSIDE] = 1
    state[GTID_END] = state[FIRST_END] = 0
    if (kind == _GTID or kind == 42 or kind == _MARIADB) and end - at <= GTID_BYTES:
        for i in range(end - at):
            first[i] = block[at + i]
        state[FIRST_END] = end - at
        if end - at >= HEADER + (13 if kind == _MARIADB else 25):
            state[GTID_END] = _put_gtid(gtid, block, at, kind)


@part
def _follow(position: int, transactions: Ints, seqnos: Ints, values: Ints, state: Ints) -> bool:
    """Go to the transaction of an event; return whether the event is its first one."""
    while state[NUMBER] < len(transactions) and position >= transactions[state[NUMBER], w.T_END]:
        state[NUMBER] += 1
        state[INSIDE] = 0
    number = state[NUMBER]
    if number == len(transactions) or position < transactions[number, w.T_START]:
        return False
    values[t.SEQNO], values[t.START], values[t.STOP] = (
        seqnos[number],
        transactions[number, w.T_START],
        transactions[number, w.T_END],
    )
    values[t.BYTES] = values[t.STOP] - values[t.START]
    values[t.COMMITTED] = values[t.COMMITTED_ISO] = transactions[number, w.T_COMMITTED]
    return bool(state[INSIDE] == 0)


@part
def _has_row(rows: Ints, taken: int, position: int) -> bool:
    """Return whether the next row event is the one at this position."""
    return bool(taken < len(rows) and rows[taken, w.R_EVENT] == position and rows[taken, w.R_OFFSET] == position)


@part
def _operation(kind: np.uint8) -> int:
    """Return 1 for inserts, 2 for updates, 4 for deletes."""
    return 1 if kind == 23 or kind == 30 else 4 if kind == 25 or kind == 32 else 2


@part
def _is_wanted(kind: np.uint8, table: int, options: Ints) -> bool:
    return bool(table != w.UNCAPTURED and options[KINDS] & _operation(kind))


@part
def _make_key(
    key: Bytes, block: Bytes, at: int, kind: np.uint8, shape: int, start: int, end: int, program: np.int64
) -> int:
    """Write the key of an event. Return its length."""
    key[0], key[1], key[2], key[3] = kind, block[at + 17], block[at + 18], np.uint8(shape)
    size = _KEY_HEAD + end - start
    if program >= 0:
        store64(key, _KEY_HEAD, np.uint64(program))
        size = _KEY_HEAD + 8
    else:
        for i in range(end - start):
            key[_KEY_HEAD + i] = block[start + i]
    store64(key, size, np.uint64(0))
    return size


@part
def _put_event(
    out: Bytes, ops: Ints, first: int, last: int, literals: Bytes, values: Ints, gtid: Bytes, block: Bytes, start: int,
    end: int, lines: Bytes, span: Ints, columns: Ints, tables: Ints, program: np.int64, names: Bytes, json: bool,
    state: Ints,
) -> int:  # fmt: skip
    """Write the event in block[start:end] by its template, from state[OUT] on. Return as put_rows."""
    at, gtid_end, kind = int(state[OUT]), state[GTID_END], block[start + 4]
    low, high = (tables[program, 0], tables[program, 1]) if program >= 0 else (np.int64(0), np.int64(0))
    text = min(start + HEADER + (1 if kind == _ROWS_QUERY else 0), end)
    if last == first:
        return at
    if at + room_of_template(ops, first, last, gtid_end) + SLACK > len(out):
        return NO_ROOM
    for op in range(first, last):
        slot = ops[op, 0]
        if slot == t.LITERAL:
            at = put_bytes(out, at, literals, ops[op, 1], ops[op, 2])
        elif slot == t.ROWS or slot == t.STATEMENT:
            if slot == t.ROWS:
                at = put_rows(out, at, lines, span[0], span[1], _operation(kind) == 2, columns[low:high], names, json)
            elif at + WIDEST * (end - text) + SLACK > len(out):
                return NO_ROOM
            else:
                at = put_statement(out, at, block, text, end, json)
            if at < 0:
                return at
            # What follows must fit as well.
            if at + ops[last - 1, 2] - ops[first, 1] + SLACK > len(out):
                return NO_ROOM
        else:
            at = put_slot(out, at, slot, values, gtid, gtid_end)
    return at


@part
def _pass(state: Ints, size: np.int64, known: bool) -> None:
    """Go behind an event. `known`: it has an entry in `rows`."""
    state[AT] += size
    state[TAKEN] += known


@part
def _list(state: Ints, written: int, fresh: bool, seqno: np.int64) -> None:
    """Note a listed event. `fresh`: it is the first one of its transaction that is listed."""
    state[OUT] = written
    state[COUNT] += fresh
    state[LISTED] = seqno


@part
def _find(
    block: Bytes, base: int, size: np.int64, end: int, program: np.int64, fresh: bool, transactions: Ints,
    slots: Ints, key_spans: Ints, keys: Bytes, key: Bytes, values: Ints, state: Ints,
) -> np.int64:  # fmt: skip
    """Read the values of an event, and find its template. Return BAD if the caller has to list the event.

    Return _NONE if it has no template; its key is then in `key`.
    """
    at = state[AT]
    kind = block[at + 4]
    body = body_end = end
    if program < 0:
        body, body_end = _read_body(block, at, end, kind, values)
        if body == BAD or body_end - body > KEY_BYTES - 32:
            return np.int64(BAD)
    _read_header(block, at, base, size, values)
    shape = fresh | (state[GTID_END] > 0) << 1 | transactions[state[NUMBER], w.T_OUTCOME] << 2
    key_end = _make_key(key, block, at, kind, shape, body, body_end, program)
    value = hash_of(key, key_end)
    found = find_template(key, key_end, value, slots, key_spans, keys)
    if found < 0:
        state[KEY_END], state[HASH] = key_end, value
        return np.int64(_NONE)
    return found


@kernel(
    "int64(uint8[::1], int64, int64, int64[:,::1], int64[::1], int64[:,::1], int64[:,::1], uint8[::1],"
    " int64[:,::1], int64[:,::1], uint8[::1], int64[:,::1], int64[::1], uint8[::1],"
    " int64[::1], int64[::1], uint8[::1], uint8[::1], uint8[::1], uint8[::1],"
    " int64[::1], uint8[::1], int64[::1], int64[::1])"
)
def list_events(
    block: Bytes, base: int, until: int, transactions: Ints, seqnos: Ints, rows: Ints, spans: Ints, lines: Bytes,
    columns: Ints, tables: Ints, names: Bytes, ops: Ints, starts: Ints, literals: Bytes,
    slots: Ints, key_spans: Ints, keys: Bytes, key: Bytes, gtid: Bytes, first: Bytes,
    values: Ints, out: Bytes, options: Ints, state: Ints,
) -> int:  # fmt: skip
    """Append the listing of events to `out`, from state[AT] on; return a status.

    Args:
        block: the block of the log.
        base: offset in the file of block[0].
        until: offset in the block; events that start there or later are not listed.
        transactions: fields walk.T_*.
        seqnos: of the transactions.
        rows: the row events, fields walk.R_*.
        spans: start and end of the staged lines of each row event in `lines`; -1 if the caller has to list it.
        lines: staged lines, and rows.SLACK more bytes.
        columns: columns of all tables, fields rows.KIND to rows.END.
        tables: first and last column of each program; -1 for a table without templates.
        names: see rows.list_rows.
        ops: steps of all templates: slot, start and end in `literals`.
        starts: first step of each template.
        literals: texts of the templates.
        slots: hash table of the templates; -1 is a free slot.
        key_spans: start of each template's key in `keys`.
        keys: the keys.
        key: scratch of KEY_BYTES.
        gtid: GTID of the transaction, GTID_BYTES.
        first: first event of the transaction, GTID_BYTES.
        values: scratch of templates.VALUES.
        out: the output block.
        options: see CHECKSUM to JSON.
        state: see AT to HASH.
    """
    while state[AT] < until and state[AT] + HEADER <= len(block):
        at = state[AT]
        kind, size = block[at + 4], np.int64(little(block, at + 9, 4))
        if CLASSES[kind] == WRAPS:
            return OTHER
        if at + size > len(block):
            return DONE
        end, position = at + size - options[CHECKSUM], base + at
        if _follow(position, transactions, seqnos, values, state):
            _enter(block, at, end, kind, gtid, first, state)
        is_rows = CLASSES[kind] == ROWS
        known = is_rows and _has_row(rows, state[TAKEN], position)
        if options[ONLY_ROWS] == 1 and not (known and _is_wanted(kind, rows[state[TAKEN], w.R_TABLE], options)):
            _pass(state, size, known)
            continue
        if state[INSIDE] == 0 or (is_rows and (not known or kind == PARTIAL_UPDATE_ROWS)):
            return OTHER
        fresh = values[t.SEQNO] != state[LISTED]
        if fresh and 0 < options[LIMIT] <= state[COUNT]:
            return ENOUGH
        row = state[TAKEN] if is_rows else 0
        if is_rows and spans[row, 0] < 0:
            return OTHER
        program = np.int64(rows[row, w.R_TABLE] if is_rows else -1)
        found = _find(block, base, size, end, program, fresh, transactions, slots, key_spans, keys, key, values, state)
        if found < 0:
            return MISSING if found == _NONE else OTHER
        written = _put_event(
            out, ops, starts[found], starts[found + 1], literals, values, gtid, block, at, end,
            lines, spans[row], columns, tables, program, names, options[JSON] == 1, state,
        )  # fmt: skip
        if written < 0:
            return FULL if written == NO_ROOM else OTHER
        _list(state, written, fresh, values[t.SEQNO])
        _pass(state, size, known)
    return DONE
