"""Writes a string value of a row image as a field, by the operation for its type and character set."""

from __future__ import annotations

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.codepoints import Codes, put_multibyte, put_single, put_unicode
from loader.binlog.values.operations import HEX, HEXED, HEXED_KEY, LATIN1, MULTIBYTE, SINGLE, UTF8
from loader.binlog.values.quoted_text import looks_undecodable, put_bytes, put_latin1, put_text, put_undecodable


@part
def _put_decoded(out: Bytes, at: int, buf: Bytes, pos: int, end: int, op: int, x: int, y: int, tables: Codes) -> int:
    if op == UTF8:
        return put_text(out, at, buf, pos, end)
    if op == LATIN1:
        return put_latin1(out, at, buf, pos, end)
    if op == HEX:
        return put_bytes(out, at, buf, pos, end, x)
    if op == MULTIBYTE:
        return put_multibyte(out, at, buf, pos, end, tables, x, y)
    if op == SINGLE:
        return put_single(out, at, buf, pos, end, tables, x)
    return put_unicode(out, at, buf, pos, end, x)


@part
def put_string(out: Bytes, at: int, buf: Bytes, pos: int, end: int, op: int, x: int, y: int, tables: Codes) -> int:
    """Write the field of buf[pos:end]; return BAD for invalid text, see also HEXED. HEX pads to `x` bytes."""
    done = _put_decoded(out, at, buf, pos, end, op % HEXED, x, y, tables)
    if op >= HEXED and done == BAD:
        return put_undecodable(out, at, buf, pos, end)
    return BAD if op >= HEXED_KEY and looks_undecodable(out, at, done) else done
