"""The errors of the loader: what failed, where, why, what to do, and whether a retry can help.

Exit codes of the command: 0 done, 1 error, 2 wrong usage, 3 a retry can help, 4 a person must look at the data.
"""

from __future__ import annotations

from loader.visible_text import continued, visible

LOAD_ALL_AGAIN = "load all tables again: loader initial-load --again"
"""The part of a hint that gets past a log that cannot be continued."""

NEWER_LOADER = f"nothing was applied; use a loader version that supports it, or {LOAD_ALL_AGAIN}"
"""The hint for something in a log that this version of the loader does not read."""


class LoaderError(Exception):
    """A failure that a person can act on.

    Args:
        what: one sentence, no trailing full stop.
        why: the cause, in the words of the server or library.
        hint: what to do; by default the `default_hint` of the class.
        where: any of source, file, position, table, column, interval, key, ... in reading order.
    """

    exit_code = 1
    retryable = False
    default_hint = ""
    """The hint of errors that are raised without one."""

    def __init__(self, what: str, *, why: str = "", hint: str = "", **where: object) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint or self.default_hint
        self.where = {name: str(value) for name, value in where.items() if value is not None}

    def __str__(self) -> str:
        place = ", ".join(f"{name} {value}" for name, value in self.where.items())
        lines = [visible(f"{self.what} ({place})" if place else self.what)]
        lines += [f"  why: {continued(self.why)}"] if self.why else []
        lines += [f"  what to do: {visible(self.hint)}"] if self.hint else []
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the error as a JSON document, for `--json` and for results of Spark jobs."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "hint": self.hint,
            "retryable": self.retryable,
            "exit_code": self.exit_code,
        }

    def with_hint(self, hint: str) -> LoaderError:
        """Return the same error with another hint."""
        return _rebuild(type(self), self.what, self.why, hint, self.where)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Spark pickles exceptions of tasks; keyword arguments need this method.
        return _rebuild, (type(self), self.what, self.why, self.hint, self.where)


def _rebuild(kind: type[LoaderError], what: str, why: str, hint: str, where: dict[str, str]) -> LoaderError:
    return kind(what, why=why, hint=hint, **where)


class UsageError(LoaderError):
    """The command line or the configuration is wrong. Nothing was done."""

    exit_code = 2


class RetryableError(LoaderError):
    """A server, the network or a disk failed. The same command can succeed later."""

    exit_code = 3
    retryable = True


class UnexpectedError(LoaderError):
    """An unknown exception. The work was tried a few times, and an orchestrator tries it a few more times."""


class SourceUnavailable(RetryableError):
    """The server does not answer."""


class StoreUnavailable(RetryableError):
    """The staging store cannot write or read an object."""


class DataError(LoaderError):
    """A person must look at the data: to continue would lose or change rows."""

    exit_code = 4


class BinlogFormatError(DataError):
    """The bytes of the log are damaged, or are no binary log."""

    default_hint = f"compare with mysqlbinlog --verify-binlog-checksum; restore the file or {LOAD_ALL_AGAIN}"


class UnsupportedError(DataError):
    """The loader does not support something in the log or the schema, and refuses it."""


class GapError(DataError):
    """The log no longer has, or no longer continues, what was already read."""


class MisfitError(DataError):
    """A value does not fit the type of its column in the warehouse."""


class StagedDataError(DataError):
    """Staged files are missing, changed, or invalid."""
