"""Table maps: parses a TABLE_MAP event into the schema of its table.

Format: the server's `Table_map_event` (mysql/binlog/event/rows_event.h): column types, their metadata, nullability,
then optional metadata (type, length, value). `binlog_row_metadata=FULL` adds names, key, labels and character sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from loader.binlog.byte_cursor import Cursor
from loader.binlog.program import label_bytes
from loader.binlog.values.charsets import charset_of
from loader.binlog.values.codepages import decode_text
from loader.binlog.values.operations import OLD_FORMAT, PACKED
from loader.errors import BinlogFormatError, DataError, UnsupportedError
from loader.model.table import ADDRESS_BYTES, GROWING_TEXTS, SEQUENCE, TEXTS, Column, TableName, TableSchema
from loader.types.catalogue import TYPES
from loader.types.column_type import Encoding, Form

_SEQUENCE_TYPES = (8, 8, 8, 8, 8, 8, 1, 8)
_TYPES = {known.log_type: known for known in TYPES if known.log_type}
_FRACTIONAL = {Encoding.TIMESTAMP, Encoding.DATETIME, Encoding.TIME}
_BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_ENUM, _SET, _STRING, _VARCHAR, _BLOB, _VECTOR, _GEOMETRY = 247, 248, 254, 15, 252, 242, 255
_COMPRESSED = {140: _BLOB, 141: _VARCHAR}
_TEXTS = (_STRING, _VARCHAR, _BLOB, *_COMPRESSED)  # 253, of tables from MySQL 4, is not supported
_METADATA_BYTES = {number: known.log_metadata for number, known in _TYPES.items()} | {
    6: 0, 7: 0, 11: 0, 12: 0, 14: 0, 15: 2, 249: 1, 250: 1, 251: 1, 252: 1, 253: 2, 254: 2, 140: 1, 141: 2,
}  # fmt: skip
_SIGNED = {number for number, known in _TYPES.items() if known.form is Form.NUMBER and known.encoding != Encoding.BIT}
"""Types with a bit in the list of signs, which has no other columns."""
_OLD_TEMPORALS = {7: "timestamp", 11: "time", 12: "datetime"}

_POSSIBLE: dict[int, Callable[[bytes], bool]] = {
    4: lambda meta: meta[0] == 4,
    5: lambda meta: meta[0] == 8,
    16: lambda meta: meta[0] < 8 and 1 <= meta[1] * 8 + meta[0] <= 64,
    17: lambda meta: meta[0] <= 6,
    18: lambda meta: meta[0] <= 6,
    19: lambda meta: meta[0] <= 6,
    245: lambda meta: meta[0] == 4,
    246: lambda meta: 1 <= meta[0] <= 65 and meta[1] <= meta[0],
    140: lambda meta: 1 <= meta[0] <= 4,
    242: lambda meta: meta[0] == 4,
    252: lambda meta: 1 <= meta[0] <= 4,
    255: lambda meta: meta[0] == 4,
}
"""Checks of the metadata by column type. Other metadata would make kernels read or write out of bounds."""

# Bytes of an ENUM or SET whose labels are not known -> the integer type of its column.
_OF_BYTES = {1: "tinyint", 2: "smallint", 3: "mediumint", 4: "int", 8: "bigint"}


class NamelessTable(UnsupportedError):
    """A table map has no column names, and the schema of its table is not known."""


def _any_metadata(_: bytes) -> bool:
    return True


@dataclass
class _Optional:
    """The optional metadata. Each list belongs to a class of types and has one entry per column of that class."""

    unsigned: list[bool] = field(default_factory=list)
    charsets: dict[int, int] = field(default_factory=dict)
    default_charset: int | None = None
    label_charsets: dict[int, int] = field(default_factory=dict)
    default_label_charset: int | None = None
    names: list[str] = field(default_factory=list)
    enums: list[list[bytes]] = field(default_factory=list)
    sets: list[list[bytes]] = field(default_factory=list)
    key: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TableMap:
    """A parsed table map.

    The columns are parsed on demand. So tables that are not captured may have unsupported columns.

    Attributes:
        name: the table.
        kinds: wire type of each column, one byte each.
        metadata: type metadata of all columns.
        optional: the optional metadata.
    """

    name: TableName
    kinds: bytes
    metadata: bytes
    optional: bytes

    @cached_property
    def types(self) -> tuple[tuple[int, bytes], ...]:
        """Return the wire type and the metadata of each column.

        Raises:
            BinlogFormatError: a length does not fit the event.
            UnsupportedError: a column type is not known.
        """
        metadata = Cursor(self.metadata)
        return tuple(_wire_type(kind, metadata, self.name) for kind in self.kinds)

    @property
    def named(self) -> bool:
        """Return whether the table map has column names, and therefore all FULL metadata."""
        return len(self._parsed_optional.names) == len(self.kinds)

    @property
    def is_sequence(self) -> bool:
        """Return whether the table is a MariaDB sequence, by the names and types of its columns."""
        if tuple(self._parsed_optional.names) != SEQUENCE:
            return False
        return tuple(kind for kind, _ in self.types) == _SEQUENCE_TYPES

    @property
    def has_old_times(self) -> bool:
        """Return whether a column has the temporal format before MySQL 5.6. The log does not describe its fractions."""
        return any(kind in _OLD_TEMPORALS for kind, _ in self.types)

    @cached_property
    def _parsed_optional(self) -> _Optional:
        return _read_optional(self.optional)

    def _whole_times(self, names: list[str]) -> Iterator[tuple[str, Column]]:
        """Yield the columns of times in an old format, as columns without fractions."""
        for (kind, _), name in zip(self.types, names, strict=True):
            if kind in _OLD_TEMPORALS:
                yield name, Column(name, _OLD_TEMPORALS[kind])

    def schema(
        self,
        *,
        mariadb: bool = False,
        known: TableSchema | None = None,
        nameless: bool = False,
        whole_times: bool = False,
    ) -> tuple[TableSchema, tuple[int, ...]]:
        """Return the table's schema, and for each column the bytes of the length before a value.

        PACKED is added to these bytes for a compressed column, OLD_FORMAT for a time in an old format.

        Args:
            mariadb: a MariaDB server wrote the log. Its log has UUID and INET4/6 as BINARY and VECTOR as VARBINARY. It
                does not say how many fractional digits a time in an old format has.
            known: the table's schema from the server or from DDL. If the log has column names, `known` only adds
                what the log lacks about a column of that name. If the log has none (binlog_row_metadata=MINIMAL),
                `known` is the result. Its types, signs and character sets must agree with the log as far as the log has
                them. A text column without a character set gets that of the log. A TEXT type may be longer in the log.
            nameless: if the log has no column names and `known` is None, name the columns `@1`, `@2`, ... as
                mysqlbinlog does. ENUM and SET are then integers, and text without a character set is bytes.
            whole_times: assume that times in an old format of MariaDB have no fractions where `known` does not say.

        Raises:
            NamelessTable: the column names are not known.
            UnsupportedError: a column type is not supported.
            DataError: `known` does not fit the log.
        """
        optional, named = self._parsed_optional, self.named
        if not named and known is not None:
            fitted = list(_fit_columns(self.types, known, _signs_and_collations(self.types, optional, mariadb)))
            return replace(known, columns=tuple(column for column, _ in fitted)), tuple(prefix for _, prefix in fitted)
        if not named and not nameless:
            raise NamelessTable(
                "the log has no column names",
                why="the server writes it with binlog_row_metadata=MINIMAL",
                hint=f"SET GLOBAL binlog_row_metadata=FULL on the server, then: {self.name.load_again}",
                table=self.name,
            )
        if not named:
            optional = replace(optional, names=[f"@{number}" for number in range(1, len(self.types) + 1)], key=[])
        told = {column.name: column for column in known.columns} if known else {}
        if whole_times:
            told |= {name: column for name, column in self._whole_times(optional.names) if name not in told}
        made = list(_logged_columns(self.types, optional, self.name, mariadb, not named, told))
        columns = tuple(column for column, _ in made)
        if not columns or any(index >= len(columns) for index in optional.key):
            raise BinlogFormatError("a table map has no columns, or a key of unknown columns", table=self.name)
        key = tuple(columns[index].name for index in optional.key)
        return TableSchema(self.name, columns, key), tuple(prefix for _, prefix in made)


def read_table_map(body: bytes) -> TableMap:
    """Parse the body of a TABLE_MAP event, from the table id on, without checksum.

    Raises:
        BinlogFormatError: a length does not fit the event.
    """
    cursor = Cursor(body)
    cursor.take(8)
    schema = cursor.text(cursor.number(1))
    cursor.take(1)
    table = cursor.text(cursor.number(1))
    cursor.take(1)
    kinds = cursor.take(cursor.length_encoded())
    metadata = cursor.take(cursor.length_encoded())
    cursor.take((len(kinds) + 7) // 8)
    return TableMap(TableName(schema, table), kinds, metadata, cursor.take(cursor.remaining))


def _wire_type(kind: int, metadata: Cursor, table: TableName) -> tuple[int, bytes]:
    """Return the wire type and its metadata. The log has ENUM and SET as STRING, with the real type in the metadata."""
    if kind not in _METADATA_BYTES:
        raise UnsupportedError(
            f"column type {kind} of the log is unknown",
            hint=f"{table.exclusion}, or use a loader version that supports it",
            table=table,
        )
    data = metadata.take(_METADATA_BYTES[kind])
    if kind == _STRING and data[0] in (_ENUM, _SET):
        return data[0], data
    return kind, data


def _read_optional(block: bytes) -> _Optional:
    found = _Optional()
    cursor = Cursor(block)
    while cursor.remaining:
        kind = cursor.number(1)
        value = Cursor(cursor.take(cursor.length_encoded()))
        if kind == 1:
            bits = value.take(value.remaining)
            found.unsigned = [bool(byte >> (7 - i) & 1) for byte in bits for i in range(8)]
        elif kind in (2, 10):
            default = value.length_encoded()
            pairs = dict(_pairs(value))
            if kind == 2:
                found.default_charset, found.charsets = default, pairs
            else:
                found.default_label_charset, found.label_charsets = default, pairs
        elif kind in (3, 11):
            listed = dict(enumerate(_numbers(value)))
            if kind == 3:
                found.charsets = listed
            else:
                found.label_charsets = listed
        elif kind == 4:
            while value.remaining:
                found.names.append(value.text(value.length_encoded()))
        elif kind in (5, 6):
            lists = found.sets if kind == 5 else found.enums
            while value.remaining:
                lists.append([value.take(value.length_encoded()) for _ in range(value.length_encoded())])
        elif kind == 8:
            found.key = list(_numbers(value))
        elif kind == 9:
            found.key = [index for index, _ in _pairs(value)]
    return found


def _numbers(cursor: Cursor) -> Iterator[int]:
    while cursor.remaining:
        yield cursor.length_encoded()


def _pairs(cursor: Cursor) -> Iterator[tuple[int, int]]:
    while cursor.remaining:
        yield cursor.length_encoded(), cursor.length_encoded()


def _check_metadata(kind: int, meta: bytes, table: TableName, name: str) -> None:
    if not _POSSIBLE.get(kind, _any_metadata)(meta):
        raise BinlogFormatError(
            f"a table map has invalid metadata {meta.hex()} for a column of type {kind}", table=table, column=name
        )


def _signs_and_collations(
    types: tuple[tuple[int, bytes], ...], optional: _Optional, mariadb: bool
) -> Iterator[tuple[bool | None, int | None]]:
    """Yield for each column whether it is unsigned, and its collation id; None if the metadata does not say.

    Each class of types has its own list of entries.
    """
    numbers = texts = labelled = 0
    for kind, _ in types:
        unsigned = collation = None
        if kind in _SIGNED:
            unsigned = optional.unsigned[numbers] if numbers < len(optional.unsigned) else None
            numbers += 1
        elif kind in _TEXTS:
            collation = optional.charsets.get(texts, optional.default_charset)
            texts += 1
        elif kind in (_ENUM, _SET):
            collation = optional.label_charsets.get(labelled, optional.default_label_charset)
            labelled += 1
        else:
            # Both servers list a character set for binary types; MySQL does not for GEOMETRY.
            texts += kind == _VECTOR or (kind == _GEOMETRY and mariadb)
        yield unsigned, collation


def _fit_columns(
    types: tuple[tuple[int, bytes], ...], known: TableSchema, told: Iterator[tuple[bool | None, int | None]]
) -> Iterator[tuple[Column, int]]:
    """Yield the columns of a known schema and their length prefixes, after a check that they fit the table map."""
    if len(types) != len(known.columns):
        raise _mismatch(known.name, f"the log has {len(types)} columns, the schema {len(known.columns)}")
    for (kind, meta), column, (unsigned, collation) in zip(types, known.columns, told, strict=True):
        _check_metadata(kind, meta, known.name, column.name)
        charset = column.charset if collation is None else charset_of(collation)
        wanted = (
            column
            if column.charset or not (column.labels or column.type in TEXTS)
            else replace(column, charset="" if charset == "binary" and not column.labels else charset)
        )
        if (wanted.labels or wanted.type in TEXTS) and not wanted.charset:
            raise _mismatch(known.name, "neither the log nor a statement says its character set", column.name)
        found, prefix = _complete_column(kind, meta, wanted, charset, unsigned, known.name)
        if found.type in GROWING_TEXTS and wanted.type in GROWING_TEXTS[: GROWING_TEXTS.index(found.type)]:
            wanted = replace(wanted, type=found.type)
        if found != wanted:
            log = f"{found} {found.charset}".strip() if found.type else "other labels"
            raise _mismatch(known.name, f"the log has {log}, the schema {wanted} {wanted.charset}".strip(), column.name)
        yield wanted, prefix


def _complete_column(
    kind: int, meta: bytes, column: Column, charset: str, unsigned: bool | None, table: TableName
) -> tuple[Column, int]:
    """Return the column of a table map, completed from `column` of a known schema, and its length prefix."""
    if kind in _TEXTS:
        found, prefix = _string_column(column.name, _COMPRESSED.get(kind, kind), meta, charset or "binary")
        return _as_known(found, column), prefix + (PACKED if kind in _COMPRESSED else 0)
    if kind in (_ENUM, _SET):
        fits = meta[1] == label_bytes(kind == _SET, len(column.labels))
        fits = fits and charset == column.charset
        return replace(column, type="enum" if kind == _ENUM else "set") if fits else Column(column.name, ""), 0
    if kind in _OLD_TEMPORALS:
        return Column(column.name, _OLD_TEMPORALS[kind], size=column.size), OLD_FORMAT
    sign = column.unsigned if unsigned is None else unsigned
    return _plain_column(column.name, kind, meta, sign, table), 4 if kind in (245, _VECTOR, _GEOMETRY) else 0


def _mismatch(table: TableName, why: str, column: str = "") -> DataError:
    return DataError(
        "the schema given for a table does not match the log",
        why=why,
        hint=f"loader schema set {table.argument} --at FILE:POS --file FILE, with its schema at this position",
        table=table,
        **({"column": column} if column else {}),
    )


def _logged_columns(
    types: tuple[tuple[int, bytes], ...],
    optional: _Optional,
    table: TableName,
    mariadb: bool,
    nameless: bool,
    told: dict[str, Column],
) -> Iterator[tuple[Column, int]]:
    """Yield the columns and their length prefixes, from the log alone."""
    enums = sets = 0
    each = zip(types, optional.names, _signs_and_collations(types, optional, mariadb), strict=True)
    for (kind, meta), name, (unsigned, collation) in each:
        _check_metadata(kind, meta, table, name)
        if kind in _TEXTS:
            unknown = nameless and collation is None
            charset = "binary" if unknown else _charset(collation, name, table)
            column, prefix = _string_column(name, _COMPRESSED.get(kind, kind), meta, charset)
            if unknown and column.type == "binary":
                # The log does not say whether it is CHAR or BINARY: so its bytes are not padded.
                column = replace(column, type="varbinary", size=0)
            yield _as_known(column, told.get(name)), prefix + (PACKED if kind in _COMPRESSED else 0)
        elif kind in (_ENUM, _SET) and nameless:
            yield Column(name, _OF_BYTES.get(meta[1], "bigint"), unsigned=True), 0
        elif kind in (_ENUM, _SET):
            lists, at = (optional.enums, enums) if kind == _ENUM else (optional.sets, sets)
            enums, sets = enums + (kind == _ENUM), sets + (kind == _SET)
            if at >= len(lists) or meta[1] != label_bytes(kind == _SET, len(lists[at])):
                raise BinlogFormatError("a table map lacks the labels of an ENUM or SET", table=table, column=name)
            yield _labelled_column(name, kind, lists[at], _charset(collation, name, table), table), 0
        elif kind in _OLD_TEMPORALS:
            yield _legacy_column(name, _OLD_TEMPORALS[kind], mariadb, told.get(name), table), OLD_FORMAT
        else:
            yield _plain_column(name, kind, meta, bool(unsigned), table), 4 if kind in (245, _VECTOR, _GEOMETRY) else 0


def _charset(collation: int | None, column: str, table: TableName) -> str:
    if collation is None:
        raise BinlogFormatError("a table map lacks the character set of a text column", table=table, column=column)
    return charset_of(collation)


def _string_column(name: str, kind: int, meta: bytes, charset: str) -> tuple[Column, int]:
    binary = charset == "binary"
    charset = "" if binary else charset
    if kind == _BLOB:
        return Column(name, _BLOBS[meta[0]] + ("blob" if binary else "text"), charset=charset), meta[0]
    if kind == _STRING:
        # Lengths over 255 have two more bits, inverted, in the type byte.
        length = meta[1] | ((meta[0] & 0x30 ^ 0x30) << 4)
        size = length if binary else 0
        return Column(name, "binary" if binary else "char", size=size, charset=charset), 2 if length > 255 else 1
    length = int.from_bytes(meta, "little")
    return Column(name, "varbinary" if binary else "varchar", charset=charset), 2 if length > 255 else 1


def _as_known(column: Column, told: Column | None) -> Column:
    """Return `told` if the log stores its type as that of `column` (UUID as BINARY, for example); else `column`."""
    if told is None or column.name != told.name:
        return column
    vector = told.type == "vector" and column.type == "varbinary"
    address = column.type == "binary" and column.size == ADDRESS_BYTES.get(told.type)
    return told if vector or address else column


def _legacy_column(name: str, kind: str, mariadb: bool, told: Column | None, table: TableName) -> Column:
    """Return the column of a time in an old format. In MySQL it has no fraction; in MariaDB `told` has its digits."""
    if not mariadb:
        return Column(name, kind)
    if told and told.type == kind:
        return told
    raise old_format_error(table, f"a {kind.upper()} column", column=name)


def old_format_error(
    table: TableName, what: str = "a TIMESTAMP, TIME or DATETIME column", **where: object
) -> UnsupportedError:
    """Return the error for a time in an old format of MariaDB whose number of fractional digits is not known."""
    return UnsupportedError(
        f"{what} in the old format cannot be read without the table's schema",
        why="the log does not say how many fractional digits it has, and so not its size",
        hint=f"ALTER TABLE ... FORCE with mysql56_temporal_format=ON on MariaDB, or {table.exclusion}",
        table=table,
        **where,
    )


def _labelled_column(name: str, kind: int, labels: list[bytes], charset: str, table: TableName) -> Column:
    try:
        texts = tuple(decode_text(charset, label) for label in labels)
    except (UnicodeDecodeError, LookupError) as error:
        raise UnsupportedError(
            f"labels in {charset} are not supported",
            why=str(error),
            hint=f"{table.exclusion}, or convert the column to utf8mb4",
            table=table,
            column=name,
        ) from error
    return Column(name, "enum" if kind == _ENUM else "set", charset=charset, labels=texts)


def _plain_column(name: str, kind: int, meta: bytes, unsigned: bool, table: TableName) -> Column:
    known = _TYPES.get(kind)
    if known and known.encoding is Encoding.INTEGER:
        return Column(name, known.name, unsigned=unsigned)
    if known and known.encoding in _FRACTIONAL:
        return Column(name, known.name, size=meta[0])
    if known and known.encoding is Encoding.DECIMAL:
        return Column(name, known.name, size=meta[0], scale=meta[1])
    if known and known.encoding is Encoding.BIT:
        return Column(name, known.name, size=meta[1] * 8 + meta[0])
    if known:
        return Column(name, known.name)
    raise UnsupportedError(
        f"column type {kind} of the log is not supported",
        hint=table.exclusion,
        table=table,
        column=name,
    )
