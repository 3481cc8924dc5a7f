"""Whether a statement that is logged instead of rows may change other tables than those it names.

Triggers, cascading foreign keys, views, MERGE tables and stored functions do so. The plan lists the server's tables of
that kind, see `loader.source.side_effects`, read before the end of the log. So the list is valid for an interval that
stops there, unless a statement of the interval changes which tables are of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from loader.binlog.events.statement import LogStatement
from loader.model.position import Position
from loader.model.table import TableName
from loader.schema.changes import Created, SchemaDefined
from loader.schema.lexer import Token, UnreadableError, tokens
from loader.schema.statement_reader import table_changes
from loader.schema.statements import Effect, Kind
from loader.staging.documents import Plan

_SERVER_OWN = "mysql"
"""The schema of the server's own tables; neither server allows triggers on them ("Restrictions on Stored Programs")."""
_DEFINES = re.compile(
    r"\b(CREATE|ALTER|DROP)\b.*\b(TRIGGER|FUNCTION|VIEW|DATABASE|SCHEMA)\b", re.IGNORECASE | re.DOTALL
)
_REFERENCES = re.compile(r"\bREFERENCES\b", re.IGNORECASE)
_NO_CALLS = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "BINARY", "BY", "CASE", "DATETIME", "DECIMAL", "DISTINCT", "DIV",
    "ELSE", "EXISTS", "FROM", "HAVING", "IN", "INDEX", "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LIKE", "LIMIT", "MOD",
    "NOT", "ON", "OR", "OVER", "PARTITION", "ROW", "SELECT", "SET", "SIGNED", "SOME", "THEN", "UNION", "UNSIGNED",
    "UPDATE", "USING", "VALUE", "VALUES", "VARCHAR", "WHEN", "WHERE", "WITH", "XOR",
})  # fmt: skip
"""Keywords that can precede a parenthesis without being function names."""
_NATIVE = frozenset({
    "ABS", "AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "CAST", "CEIL", "CEILING", "CHAR", "CHAR_LENGTH", "COALESCE",
    "CONCAT", "CONCAT_WS", "CONV", "CONVERT", "COUNT", "CRC32", "CURDATE", "CURRENT_DATE", "CURRENT_TIME",
    "CURRENT_TIMESTAMP", "CURTIME", "DATABASE", "DATE", "DATEDIFF", "DATE_ADD", "DATE_FORMAT", "DATE_SUB", "DAY",
    "ELT", "EXTRACT", "FIELD", "FIND_IN_SET", "FLOOR", "FORMAT", "FROM_UNIXTIME", "GREATEST", "GROUP_CONCAT",
    "HEX", "HOUR", "IF", "IFNULL", "INSTR", "ISNULL", "JSON_ARRAY", "JSON_EXTRACT", "JSON_OBJECT", "JSON_SET",
    "LAST_INSERT_ID", "LEAST", "LEFT", "LENGTH", "LOCATE", "LOWER", "LPAD", "LTRIM", "MAX", "MD5", "MID", "MIN",
    "MINUTE", "MONTH", "NOW", "NULLIF", "ORD", "POW", "RAND", "REPEAT", "REPLACE", "REVERSE", "RIGHT", "ROUND",
    "RPAD", "RTRIM", "SECOND", "SHA1", "SHA2", "SIGN", "SUBSTR", "SUBSTRING", "SUBSTRING_INDEX", "SUM", "SYSDATE",
    "TIME", "TIMESTAMP", "TO_DAYS", "TRIM", "TRUNCATE", "UNHEX", "UNIX_TIMESTAMP", "UPPER", "USER", "UTC_DATE",
    "UTC_TIME", "UTC_TIMESTAMP", "UUID", "UUID_SHORT", "VERSION", "WEEK", "YEAR",
})  # fmt: skip
"""Native functions. A call without a schema never means a stored function of the same name."""


class IndirectWrites:
    """What the plan of an interval says about indirect writes.

    Args:
        plan: of the interval.
        interval: all statements of the interval, with their effects.
    """

    def __init__(self, plan: Plan, interval: Sequence[tuple[LogStatement, Effect]]) -> None:
        self._plan = plan
        self._interval = interval

    def may_follow(self, statement: LogStatement, written: Iterable[TableName]) -> bool:
        """Return whether a row-changing statement may also change tables that are not among its targets."""
        try:
            found = tokens(statement.text, statement.sql_mode, statement.mariadb)
        except UnreadableError:
            return True
        names = set(written)
        targets = {name.table.casefold() for name in names}
        if _calls(found, targets):
            return True
        words = {token.text.casefold() for token in found if token.kind in {"word", "name"}}
        if all(name.schema == _SERVER_OWN for name in names) and "select" not in words:
            return False
        if not self._is_valid or not _inside(statement, self._plan):
            return True
        return not (words.isdisjoint(self._plan.side_effects) and targets.isdisjoint(self._plan.side_effects_of_writes))

    @cached_property
    def _is_valid(self) -> bool:
        """Whether the lists of the plan are known, and hold for the whole interval."""
        known = self._plan.side_effects_at and self._plan.side_effects_at == self._plan.stop
        return bool(known) and not any(_defines(statement, found) for statement, found in self._interval)


def _inside(statement: LogStatement, plan: Plan) -> bool:
    """Return whether the statement ran in the interval. A statement of a prepared transaction can be older."""
    place, start = Position.parse(statement.position), plan.interval.start
    return place.basename == start.basename and place >= start


def _calls(found: Sequence[Token], tables: set[str]) -> bool:
    """Return whether the statement calls a function that may be a stored function."""
    for place, token in enumerate(found[1:], 1):
        before = found[place - 1]
        if token.word != "(" or before.kind not in {"word", "name"}:
            continue
        qualified = place > 1 and found[place - 2].word == "."
        named = before.text.casefold() in tables and not _is_value(found, place)
        native = before.kind == "word" and before.word in _NO_CALLS | _NATIVE
        if not named and (qualified or not native):
            return True
    return False


def _is_value(found: Sequence[Token], place: int) -> bool:
    """Return whether a name before a parenthesis comes after the column list, where it cannot be the table."""
    return any(token.word in {"VALUES", "VALUE", "SELECT", "SET"} for token in found[:place])


def _defines(statement: LogStatement, found: Effect) -> bool:
    """Return whether the statement may change which tables have triggers, cascading keys, views or functions."""
    suspect = found.kind is Kind.BARRIER or _DEFINES.search(statement.text)
    return bool(suspect) and not _only_adds(statement)


def _only_adds(statement: LogStatement) -> bool:
    """Return whether the statement only creates a database, or a table of columns without foreign keys.

    pt-table-checksum begins each run with both.
    """
    if _REFERENCES.search(statement.text):
        return False
    match table_changes(statement.text, statement.database, statement.sql_mode, statement.mariadb):
        case (SchemaDefined(made=True),) | (Created(defines=tuple(), like=None, replaces=False),):
            return True
    return False
