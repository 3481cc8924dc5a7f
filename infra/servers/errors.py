"""The one error of this package."""

from __future__ import annotations

from pathlib import Path


class ServerError(RuntimeError):
    """A server could not be fetched, started or stopped; the text says what failed, why, and what to do."""


def tail(text: str, lines: int = 15) -> str:
    """The last lines of a log, indented, to be shown below an error."""
    last = text.strip().splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in last) or "    (nothing was logged)"


def tail_of(log: Path, offset: int = 0) -> str:
    """The last lines that a log file holds beyond a byte offset."""
    if not log.exists():
        return tail("")
    with log.open("rb") as stream:
        stream.seek(offset)
        return tail(stream.read().decode("utf-8", "replace"))
