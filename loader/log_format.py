"""How the loader's processes write their logs."""

from __future__ import annotations

import logging
from typing import Any

from loader.visible import continued, visible_lines


class VisibleFormatter(logging.Formatter):
    """Formats records with visible messages; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """See logging.Formatter."""
        record.message = continued(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        """See logging.Formatter."""
        return visible_lines(super().formatException(ei))
