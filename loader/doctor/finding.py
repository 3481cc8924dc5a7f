"""What a check finds, and the running of checks: one that fails itself is a finding too."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import LoaderError

_LOG = logging.getLogger(__name__)

Severity = Literal["ok", "warning", "error"]
_LONGEST = 300
_EXIT_CODES: dict[Severity, int] = {"ok": 0, "warning": 4, "error": 1}


class Finding(BaseModel):
    """A line of the doctor's page: what was looked at, how it stands, and what cures it."""

    model_config = ConfigDict(frozen=True)

    name: str
    severity: Severity
    what: str
    cure: str = ""


Check = tuple[str, Callable[[], Finding | list[Finding]]]
"""A name and what finds something of that name; several findings may have it."""


def ok(name: str, what: str) -> Finding:
    """All is well."""
    return Finding(name=name, severity="ok", what=what)


def warning(name: str, what: str, cure: str) -> Finding:
    """It works, and may not always."""
    return Finding(name=name, severity="warning", what=what, cure=cure)


def error(name: str, what: str, cure: str) -> Finding:
    """It does not work, or loses changes."""
    return Finding(name=name, severity="error", what=what, cure=cure)


def examine(checks: Iterable[Check]) -> list[Finding]:
    """Run checks, in order and each to its end; a LoaderError is a finding with its own cure."""
    found: list[Finding] = []
    for name, check in checks:
        try:
            one = check()
        except LoaderError as failed:
            found.append(of_error(name, failed))
        except Exception as failed:
            _LOG.debug("check %s", name, exc_info=failed)
            found.append(error(name, f"the check itself failed: {_short(failed)}", "--verbose shows the traceback"))
        else:
            found += one if isinstance(one, list) else [one]
    return found


def _short(failed: Exception) -> str:
    """What an exception says, without the stack that Java's have in their text."""
    text = str(getattr(failed, "java_exception", failed))
    return f"{type(failed).__name__}: {text}".splitlines()[0][:_LONGEST]


def of_error(name: str, failed: LoaderError) -> Finding:
    """An error as a finding."""
    where = ", ".join(f"{key} {value}" for key, value in failed.where.items())
    what = f"{failed.what} ({where})" if where else failed.what
    return error(
        name, f"{what}: {failed.why}" if failed.why else what, failed.hint or "mend what it says, then run again"
    )


def findings_of(result: dict[str, Any]) -> list[Finding]:
    """The findings in the result of a job."""
    return [Finding.model_validate(one) for one in result["findings"]]


def exit_code(findings: Iterable[Finding]) -> int:
    """0 when all is well, 1 with an error, 4 with warnings alone: to be looked at."""
    severities = {finding.severity for finding in findings}
    worst: Severity = "error" if "error" in severities else "warning" if "warning" in severities else "ok"
    return _EXIT_CODES[worst]
