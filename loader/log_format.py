"""The log format of the loader's processes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loader.visible_text import continued, visible_lines


class VisibleFormatter(logging.Formatter):
    """Formats records with visible messages. A traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """See logging.Formatter."""
        record.message = continued(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        """See logging.Formatter."""
        return visible_lines(super().formatException(ei))


@contextmanager
def visible_records() -> Iterator[None]:
    """Make messages of the loader's loggers visible in a process whose log another program formats."""
    before = logging.getLogRecordFactory()

    def made(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = before(*arguments, **named)
        # structlog creates records without a name to copy other records into them
        if record.name and record.name.partition(".")[0] == "loader":
            record.msg, record.args = continued(record.getMessage()), ()
        return record

    logging.setLogRecordFactory(made)
    try:
        yield
    finally:
        logging.setLogRecordFactory(before)
