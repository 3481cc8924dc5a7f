"""The errors of the loader: what failed, where, why, what to do, and whether a retry can help.

Exit codes of the command: 0 done, 1 error, 2 usage, 3 a retry can help, 4 data must be looked at.
"""

from __future__ import annotations

from loader.visible_text import continued, visible

LOAD_ALL_AGAIN = "load all tables again: loader initial-load --again"
"""The part of a hint that gets past a log that cannot be read on."""


class LoaderError(Exception):
    """Something failed that a person can act upon.

    Args:
        what: one sentence, no trailing full stop.
        why: the cause, in the words of the server or library that gave it.
        hint: what to do about it.
        where: any of source, file, position, table, column, interval, key, ... in reading order.
    """

    exit_code = 1
    retryable = False

    def __init__(self, what: str, *, why: str = "", hint: str = "", **where: object) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        self.where = {name: str(value) for name, value in where.items() if value is not None}

    def __str__(self) -> str:
        place = ", ".join(f"{name} {value}" for name, value in self.where.items())
        lines = [visible(f"{self.what} ({place})" if place else self.what)]
        lines += [f"  why: {continued(self.why)}"] if self.why else []
        lines += [f"  what to do: {visible(self.hint)}"] if self.hint else []
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """The error as a JSON document, for `--json` and for results of Spark jobs."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "hint": self.hint,
            "retryable": self.retryable,
            "exit_code": self.exit_code,
        }

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Spark carries exceptions from its tasks to the driver by pickle; keyword arguments need help.
        return _rebuild, (type(self), self.what, self.why, self.hint, self.where)


def _rebuild(kind: type[LoaderError], what: str, why: str, hint: str, where: dict[str, str]) -> LoaderError:
    return kind(what, why=why, hint=hint, **where)


class UsageError(LoaderError):
    """The command or its configuration is wrong; nothing was done."""

    exit_code = 2


class RetryableError(LoaderError):
    """The surroundings failed (server, network, disk); the same command can succeed later."""

    exit_code = 3
    retryable = True


class UnexpectedError(LoaderError):
    """An exception that the loader has no word for; it was tried a few times, and an orchestrator tries a few more."""


class SourceUnavailable(RetryableError):
    """The server does not answer."""


class StoreUnavailable(RetryableError):
    """The staging store does not take or give an object."""


class DataError(LoaderError):
    """The data must be looked at: going on would lose or change rows."""

    exit_code = 4


class BinlogFormatError(DataError):
    """Bytes of the log that are damaged or not a binary log."""


class UnsupportedError(DataError):
    """Something in the log or the schema that the loader does not cover, and so refuses."""


class GapError(DataError):
    """The log no longer holds, or no longer continues, what was already read."""


class StagedDataError(DataError):
    """Staged files that are missing, changed, or hold what they should not."""
