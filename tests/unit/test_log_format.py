"""Records of the loader's loggers in a process whose log another program formats."""

from __future__ import annotations

import logging

from loader.log_format import visible_records


def _message(name: str | None, message: str, *arguments: object) -> str:
    with visible_records():
        return logging.makeLogRecord({"name": name, "msg": message, "args": arguments}).getMessage()


def test_a_message_is_made_visible() -> None:
    with visible_records():
        record = logging.getLogger("loader.a").makeRecord(
            "loader.a", logging.INFO, "a.py", 1, "read %s", ("a\x1b[2Jb",), None
        )
    assert "\x1b" not in record.getMessage()


def test_a_message_of_another_program_stays() -> None:
    with visible_records():
        record = logging.getLogger("a").makeRecord("a", logging.INFO, "a.py", 1, "read %s", ("a\x1b[2Jb",), None)
    assert record.getMessage() == "read a\x1b[2Jb"


def test_a_record_is_copied() -> None:
    """A formatter copies records with makeLogRecord, which makes one without a name first."""
    assert _message("loader.a", "read %s", "b") == "read b"
    assert _message(None, "read %s", "b") == "read b"
