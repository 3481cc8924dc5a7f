"""Commands in printed text, as a person copies them."""

from __future__ import annotations

import re
import shlex

_NEED_SOURCE = (
    "adopt", "begin", "doctor", "extract", "follow", "initial-load", "intervals", "maintain", "materialise", "pause",
    "plan", "purge", "release", "replay", "resume", "run", "schema set", "schema show", "skip", "staged cat",
    "staged compare", "staged restore", "staged sign", "status", "tables", "verify",
)  # fmt: skip
"""Commands with the option --source; a test compares them with the command line."""

_COMMAND = re.compile(rf"(?<!the )\bloader (?:--json )?(?:{'|'.join(_NEED_SOURCE)})(?![\w-])(?! --source\b| --help\b)")


def with_source(text: str, source: str) -> str:
    """Return a text whose commands name a source; unchanged if `source` is empty."""
    return _COMMAND.sub(lambda found: f"{found[0]} --source {shlex.quote(source)}", text) if source else text
