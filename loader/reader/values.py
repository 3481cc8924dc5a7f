"""One value of a row, parsed from its staged text, and its conversions.

NULL, an absent column and an empty text are different. A conversion returns None for NULL, raises ConversionError for
an absent column, and returns empty text or bytes for an empty text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from loader.errors import DataError
from loader.model.table import Column
from loader.types.catalogue import names_of
from loader.types.column_type import Encoding

_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_SHOWN = 40  # characters of a value in a repr
WHOLE_NUMBERS = names_of(Encoding.INTEGER, Encoding.BIT, Encoding.YEAR)
REAL_NUMBERS = names_of(Encoding.FLOAT, Encoding.DOUBLE)
BYTES = names_of(Encoding.BYTES)


class ConversionError(DataError):
    """A value cannot be converted to the wanted type."""


@dataclass(frozen=True)
class PartialDate:
    """A date or datetime that Python cannot represent: with a zero month or day, such as `2024-00-00`."""

    text: str

    def __str__(self) -> str:
        return self.text


Native = None | int | float | Decimal | str | bytes | date | datetime | timedelta | frozenset[str] | PartialDate


@dataclass(frozen=True)
class Value:
    """A value. `text`: its staged text without quotes and escapes; None for NULL."""

    column: Column
    text: str | None
    is_absent: bool = False
    """The row image lacks the column (binlog_row_image MINIMAL or NOBLOB)."""
    is_unreadable: bool = False
    """The bytes are not valid for the column's type. `text` is `\\x` and their hex digits."""

    @property
    def raw(self) -> bytes:
        """The bytes of an unreadable value; ValueError for any other."""
        if not self.is_unreadable or self.text is None:
            raise ValueError("only an unreadable value has raw bytes")
        return bytes.fromhex(self.text[2:])

    @property
    def shown(self) -> str:
        """The value as `repr` shows it, cut after 40 characters."""
        text = "<absent>" if self.is_absent else repr(self.native())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."

    def __repr__(self) -> str:
        return f"Value({self.column.name}={self.shown})"

    @property
    def is_null(self) -> bool:
        """Whether the value is NULL; an absent value is not."""
        return self.text is None and not self.is_absent

    def as_text(self) -> str | None:
        """Return the staged text, for any type.

        Raises:
            ConversionError: the value is absent. All conversions raise it.
        """
        if self.is_absent:
            raise self._not("a value", "the row image leaves the column out")
        return self.text

    def as_int(self) -> int | None:
        """Return an integer: of integer types, BIT, YEAR, and DECIMAL without a fraction."""
        text = self.as_text()
        if text is None:
            return None
        number = self._decimal(text)
        if number != number.to_integral_value():
            raise self._not("a whole number")
        return int(number)

    def as_decimal(self) -> Decimal | None:
        """Return an exact number. FLOAT and DOUBLE have their shortest decimal form."""
        text = self.as_text()
        return None if text is None else self._decimal(text)

    def as_float(self) -> float | None:
        """Return a binary floating-point number; a DECIMAL is rounded."""
        text = self.as_text()
        return None if text is None else float(self._decimal(text))

    def as_bytes(self) -> bytes | None:
        """Return the bytes of a binary type or an unreadable value; for other types the UTF-8 of the text."""
        text = self.as_text()
        if text is None:
            return None
        if self.is_unreadable:
            return self.raw
        return bytes.fromhex(text) if self.column.type in BYTES else text.encode("utf-8")

    def as_datetime(self) -> datetime | None:
        """Return a DATE, DATETIME (without zone) or TIMESTAMP (UTC). Raises ConversionError also for a PartialDate."""
        text = self.as_text()
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise self._not("a date or time", str(error)) from error
        return moment.replace(tzinfo=UTC) if self.column.type == "timestamp" else moment

    def as_date(self) -> date | None:
        """Return the day of a DATE, DATETIME or TIMESTAMP."""
        moment = self.as_datetime()
        return moment.date() if moment else None

    def as_timedelta(self) -> timedelta | None:
        """Return a TIME: up to 838 hours, positive or negative, in microseconds."""
        text = self.as_text()
        if text is None:
            return None
        found = _TIME.fullmatch(text)
        if not found:
            raise self._not("a duration")
        hours, minutes, seconds = int(found[2]), int(found[3]), int(found[4])
        span = timedelta(
            hours=hours, minutes=minutes, seconds=seconds, microseconds=int((found[5] or "0").ljust(6, "0"))
        )
        return -span if found[1] else span

    def as_labels(self) -> frozenset[str] | None:
        """Return the labels of a SET, or the single label of an ENUM."""
        text = self.as_text()
        if text is None:
            return None
        return frozenset(text.split(",") if text and self.column.type == "set" else [text] if text else [])

    def native(self) -> Native:
        """Return the value as the Python type of its column; PartialDate for a date that Python cannot represent.

        int, Decimal, float, str (texts, ENUM, JSON, VECTOR), bytes (also GEOMETRY and unreadable values), date,
        datetime, timedelta or a set of labels.
        """
        kind, text = self.column.type, self.as_text()
        if text is None:
            return None
        if self.is_unreadable:
            return self.raw
        if kind in WHOLE_NUMBERS:
            return int(text)
        if kind in REAL_NUMBERS:
            return float(text)
        if kind == "decimal":
            return Decimal(text)
        if kind in BYTES:
            return bytes.fromhex(text)
        if kind == "set":
            return self.as_labels()
        if kind == "time":
            return self.as_timedelta()
        if kind in {"date", "datetime", "timestamp"}:
            return self._moment(text)
        return text

    def _moment(self, text: str) -> date | datetime | PartialDate:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            return PartialDate(text)
        if self.column.type == "date":
            return found.date()
        return found.replace(tzinfo=UTC) if self.column.type == "timestamp" else found

    def _decimal(self, text: str) -> Decimal:
        try:
            return Decimal(text)
        except InvalidOperation as error:
            raise self._not("a number") from error

    def _not(self, wanted: str, why: str = "") -> ConversionError:
        shown = "an absent value" if self.is_absent else repr(self.text)
        return ConversionError(f"{shown} is not {wanted}", why=why, column=self.column.name, type=self.column)
