"""`loader doctor`: one page with the result of all checks of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption

if TYPE_CHECKING:
    from loader.config import file as config
    from loader.doctor import page
    from loader.doctor.finding import Finding
else:
    config, page = lazily("loader.config.file"), lazily("loader.doctor.page")


def doctor(context: typer.Context, source: SourceOption = "") -> None:
    """Check server, log, grants, tables, store, warehouse and this machine, without changing anything.

    --source may be an address that is not in the configuration; then only that server or folder is checked. Exit codes:
    0 no findings, 1 errors, 4 warnings only.
    """
    from loader.doctor.finding import exit_code

    session: Session = context.obj
    findings = _findings(session, source)
    if session.output.as_json:
        session.output.document(findings)
    else:
        _show(session.output, findings)
    raise typer.Exit(exit_code(findings))


def _findings(session: Session, source: str) -> list[Finding]:
    by_itself = "://" in source and not (config.configured(session.file) and session.load().at(source))
    return page.of_address(source) if by_itself else page.of_source(session.settings(source))


def _show(output: Output, findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        output.line(f"{finding.severity:7}  {finding.name:{width}}  {finding.what}")
        if finding.cure:
            output.next_step(f"{'':7}  {'':{width}}  what to do: {finding.cure}")
    errors, warnings = (sum(finding.severity == name for finding in findings) for name in ("error", "warning"))
    counted = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    output.line(f"{counted}, {len(findings)} checks")
