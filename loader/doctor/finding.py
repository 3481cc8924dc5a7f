"""Findings of checks, and the running of checks. A check that fails is a finding as well."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import LoaderError
from loader.refusals import refusal

_LOG = logging.getLogger(__name__)

Severity = Literal["ok", "warning", "error"]
_LONGEST = 300
_EXIT_CODES: dict[Severity, int] = {"ok": 0, "warning": 4, "error": 1}


class Finding(BaseModel):
    """A line of the doctor's page: what was checked, the result, and how to fix it."""

    model_config = ConfigDict(frozen=True)

    name: str
    severity: Severity
    what: str
    cure: str = ""


Check = tuple[str, Callable[[], Finding | list[Finding]]]
"""A name and the function that checks it. Several findings may have the same name."""


def ok(name: str, what: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(name=name, severity="ok", what=what)


def warning(name: str, what: str, cure: str) -> Finding:
    """Return a finding about something that works now, and may fail later."""
    return Finding(name=name, severity="warning", what=what, cure=cure)


def error(name: str, what: str, cure: str) -> Finding:
    """Return a finding about something that does not work or loses changes."""
    return Finding(name=name, severity="error", what=what, cure=cure)


def examine(checks: Iterable[Check]) -> list[Finding]:
    """Run all checks in order. An exception becomes a finding; a LoaderError brings its own fix."""
    findings: list[Finding] = []
    for name, check in checks:
        try:
            result = check()
        except LoaderError as failed:
            findings.append(of_error(name, failed))
        except Exception as failed:
            _LOG.debug("check %s", name, exc_info=failed)
            findings.append(_unexpected(name, failed))
        else:
            findings += result if isinstance(result, list) else [result]
    return findings


def _unexpected(name: str, failed: Exception) -> Finding:
    if refused := refusal(failed):
        return of_error(name, refused)
    return error(name, f"the check itself failed: {_short(failed)}", "--verbose shows the traceback")


def _short(failed: Exception) -> str:
    """Return the text of an exception, without the stack trace that Java exceptions have in it."""
    text = str(getattr(failed, "java_exception", failed))
    return f"{type(failed).__name__}: {text}".splitlines()[0][:_LONGEST]


def of_error(name: str, failed: LoaderError) -> Finding:
    """Return an error as a finding."""
    where = ", ".join(f"{key} {value}" for key, value in failed.where.items())
    what = f"{failed.what} ({where})" if where else failed.what
    return error(name, f"{what}: {failed.why}" if failed.why else what, failed.hint or "fix the cause, then run again")


def findings_of(result: dict[str, Any]) -> list[Finding]:
    """Return the findings in the result of a job."""
    return [Finding.model_validate(one) for one in result["findings"]]


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 0 without a problem, 1 with an error, and 4 with warnings only."""
    severities = {finding.severity for finding in findings}
    worst: Severity = "error" if "error" in severities else "warning" if "warning" in severities else "ok"
    return _EXIT_CODES[worst]
