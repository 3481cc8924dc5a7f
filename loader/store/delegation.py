"""Delegation tokens of HDFS: the driver of a job gets one with its ticket, and tasks use it instead of a ticket.

Requests have the token in their address, which logs and errors must not show.
https://hadoop.apache.org/docs/r3.4.2/hadoop-project-dist/hadoop-hdfs/WebHDFS.html#Authentication
"""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import urlsplit

from loader.secret import kept_secret

_TOKEN = re.compile(r"((?:delegation|token)=)[^&\s)'\"]+")
_LOGGERS_OF_ADDRESSES = ("urllib3.connection", "urllib3.connectionpool")


class Delegated:
    """The authentication of a session of requests with a token, which also names the user."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: Any) -> Any:
        """Prepare a request. A name node has already put the token into the address of a data node."""
        parts = urlsplit(request.url)
        kept = [part for part in parts.query.split("&") if part and not part.startswith("user.name=")]
        if not any(part.startswith("delegation=") for part in kept):
            kept.append(f"delegation={self._token}")
        request.url = parts._replace(query="&".join(kept)).geturl()
        return request


class _WithoutTokens(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_tokens(record.getMessage()), ()
        return True


def token_reference(web: str) -> str:
    """Return the reference under which a task keeps the token for the WebHDFS at these addresses."""
    return f"delegation:{web}"


def kept_token(web: str) -> str:
    """Return the token that this task got from the driver, or an empty string."""
    return kept_secret(token_reference(web))


def without_tokens(text: str) -> str:
    """Return a text in which the tokens of addresses are replaced."""
    return _TOKEN.sub(r"\1...", text)


def keep_tokens_out_of_logs() -> None:
    """Remove tokens from the addresses that the HTTP library logs, at the level DEBUG and in some warnings."""
    for name in _LOGGERS_OF_ADDRESSES:
        logger = logging.getLogger(name)
        if not any(isinstance(known, _WithoutTokens) for known in logger.filters):
            logger.addFilter(_WithoutTokens())
