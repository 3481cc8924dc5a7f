"""Parses the server's binary JSON into a tree, applies the diffs of partial updates, and writes the tree back.

Formats: the server's `json_binary.h`, and `json_diff.cc`: an operation 1 (0 replace, 1 insert, 2 remove), the path, and
except for a removal the value; path and value follow their length-encoded lengths. Scalars stay bytes. Trees are
written in the large format (four bytes per offset), which every reader accepts.
"""

from __future__ import annotations

import json
import re
import struct
from typing import NamedTuple

from loader.binlog.byte_cursor import Cursor
from loader.errors import BinlogFormatError

_LARGE_OBJECT, _LARGE_ARRAY, _LITERAL, _STRING, _OPAQUE = 1, 3, 4, 12, 15
_SIZES = {5: 2, 6: 2, 7: 4, 8: 4, 9: 8, 10: 8, 11: 8}
_INLINE_SMALL, _INLINE_LARGE = (4, 5, 6), (4, 5, 6, 7, 8)
_DEPTH = 100
_REPLACE, _INSERT, _REMOVE = range(3)
_LEG = re.compile(r"\[(?:([0-9]+)|last(?:-([0-9]+))?)\]|\.([^.\[\"]+)|\.(?=\")", re.DOTALL)
"""One leg of a path: an array cell by number from the start or from the end, a member, or the point before `"`.

The server writes a member without quotes if it is an ECMAScript identifier (`json_path.cc`): letters and digits of all
scripts, combining marks, `$`, `_` and other connectors. Cells are written as in the statement, such as `[last-1]`.
"""


class Scalar(NamedTuple):
    """A value that is neither array nor object: its type and bytes."""

    kind: int
    data: bytes


Tree = dict[bytes, "Tree"] | list["Tree"] | Scalar


def read_tree(document: bytes) -> Tree:
    """Parse a document. An empty one is the literal null, as on the server.

    Raises:
        BinlogFormatError: the document is damaged.
    """
    try:
        return _read_value(document[0], document[1:], 0, 0) if document else Scalar(_LITERAL, b"\0")
    except (IndexError, struct.error) as error:
        raise _damage() from error


def write_tree(tree: Tree) -> bytes:
    """Return the document of a tree."""
    kind, data = _write(tree)
    return bytes([kind]) + data


def apply_diffs(tree: Tree, diffs: bytes) -> Tree:
    """Apply all diffs in order; return the tree, which is changed in place.

    Raises:
        BinlogFormatError: the diffs are damaged, or one does not fit the tree.
    """
    cursor = Cursor(diffs)
    while cursor.remaining:
        operation = cursor.number(1)
        path = cursor.take(cursor.length_encoded()).decode("utf-8", "replace")
        legs = _parse_path(path)
        value = None if operation == _REMOVE else read_tree(cursor.take(cursor.length_encoded()))
        if not legs or operation > _REMOVE or not _apply(tree, operation, legs, value):
            raise BinlogFormatError("a JSON diff does not fit the document before it", path=path)
    return tree


def _apply(tree: Tree, operation: int, legs: list[bytes | int], value: Tree | None) -> bool:
    for leg in legs[:-1]:
        found = _child(tree, leg)
        if found is None:
            return False
        tree = found
    last = legs[-1]
    there = _child(tree, last) is not None
    if operation == _INSERT:
        if isinstance(tree, list) and isinstance(last, int) and value is not None:
            tree.insert(_place(tree, last), value)
            return True
        there = not there and isinstance(tree, dict)
    if not there:
        return False
    if isinstance(tree, dict) and isinstance(last, bytes):
        if value is None:
            del tree[last]
        else:
            tree[last] = value
        return True
    if isinstance(tree, list) and isinstance(last, int):
        at = _place(tree, last)
        tree[at : at + 1] = [] if value is None else [value]
        return True
    return False


def _place(tree: list[Tree], leg: int) -> int:
    """Return the index of a cell in an array, limited to its start and end."""
    return min(leg, len(tree)) if leg >= 0 else max(len(tree) + leg, 0)


def _child(tree: Tree, leg: bytes | int) -> Tree | None:
    if isinstance(tree, dict) and isinstance(leg, bytes):
        return tree.get(leg)
    if isinstance(tree, list) and isinstance(leg, int) and -len(tree) <= leg < len(tree):
        return tree[leg]
    return None


def _parse_path(path: str) -> list[bytes | int]:
    """Return the members and cells of a path such as `$.a."b c"[3][last-1]`; cells from the end are negative."""
    legs: list[bytes | int] = []
    at = 1
    while at < len(path):
        found = _LEG.match(path, at)
        if not found:
            raise _path_error(path)
        at = found.end()
        if found[0].startswith("["):
            legs.append(int(found[1]) if found[1] else -1 - int(found[2] or 0))
        elif found[3]:
            legs.append(found[3].encode())
        else:
            try:
                name, at = json.JSONDecoder(strict=False).raw_decode(path, at)
            except ValueError as error:
                raise _path_error(path) from error
            legs.append(str(name).encode("utf-8", "surrogatepass"))
    return legs


def _read_value(kind: int, data: bytes, at: int, depth: int) -> Tree:
    """Parse the value of type `kind` at data[at]."""
    if depth > _DEPTH:
        raise _damage()
    if kind <= _LARGE_ARRAY:
        return _read_container(kind, data[at:], depth)
    if kind == _LITERAL:
        return Scalar(kind, data[at : at + 1])
    if kind in _SIZES:
        return Scalar(kind, _slice(data, at, _SIZES[kind]))
    start = at + (kind == _OPAQUE)
    size, end = _read_length(data, start)
    if kind not in (_STRING, _OPAQUE):
        raise _damage()
    _slice(data, end, size)
    return Scalar(kind, data[at : end + size])


def _read_container(kind: int, data: bytes, depth: int) -> Tree:
    wide = "<I" if kind in (_LARGE_OBJECT, _LARGE_ARRAY) else "<H"
    step = struct.calcsize(wide)
    inline = _INLINE_LARGE if step == 4 else _INLINE_SMALL
    (count,) = struct.unpack_from(wide, data)
    keys = kind < 2
    entry = 2 * step + (count * (step + 2) if keys else 0)
    if entry + count * (step + 1) > len(data):
        raise _damage()
    values = []
    for at in range(entry, entry + count * (step + 1), step + 1):
        (place,) = struct.unpack_from(wide, data, at + 1)
        values.append(_read_value(data[at], data, at + 1 if data[at] in inline else place, depth + 1))
    if not keys:
        return values
    names = (struct.unpack_from(wide + "H", data, 2 * step + n * (step + 2)) for n in range(count))
    return dict(zip((_slice(data, place, size) for place, size in names), values, strict=True))


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length in 7-bit groups, and the position behind it."""
    size = 0
    for n in range(5):
        size |= (data[at + n] & 0x7F) << (7 * n)
        if data[at + n] < 0x80:
            return size, at + n + 1
    raise _damage()


def _slice(data: bytes, at: int, size: int) -> bytes:
    found = data[at : at + size]
    if len(found) != size:
        raise _damage()
    return found


def _write(tree: Tree) -> tuple[int, bytes]:
    if isinstance(tree, Scalar):
        return tree
    if isinstance(tree, list):
        return _LARGE_ARRAY, _write_container([], tree)
    # The server orders keys by length, then by bytes.
    names = sorted(tree, key=lambda name: (len(name), name))
    return _LARGE_OBJECT, _write_container(names, [tree[name] for name in names])


def _write_container(names: list[bytes], values: list[Tree]) -> bytes:
    place = 8 + 6 * len(names) + 5 * len(values)
    entries, content = b"", []
    for name in names:
        entries += struct.pack("<IH", place, len(name))
        content.append(name)
        place += len(name)
    heads = []
    for kind, data in map(_write, values):
        if kind in _INLINE_LARGE:
            fill = b"\xff" if kind == 5 and data[1] & 0x80 else b"\0"
            heads.append(bytes([kind]) + data + fill * (4 - len(data)))
            continue
        heads.append(struct.pack("<BI", kind, place))
        content.append(data)
        place += len(data)
    return struct.pack("<II", len(values), place) + entries + b"".join(heads) + b"".join(content)


def _damage() -> BinlogFormatError:
    return BinlogFormatError("a JSON document in the log is damaged")


def _path_error(path: str) -> BinlogFormatError:
    return BinlogFormatError("the path of a JSON diff in the log cannot be read", path=repr(path))
