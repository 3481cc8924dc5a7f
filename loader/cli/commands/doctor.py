"""`loader doctor`: one page on whether everything a source needs is as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption

if TYPE_CHECKING:
    from loader import config
    from loader.doctor import page
    from loader.doctor.finding import Finding
else:
    config, page = lazily("loader.config"), lazily("loader.doctor.page")


def doctor(context: typer.Context, source: SourceOption = "") -> None:
    """Look at server, log, grants, tables, store, warehouse and this machine; change nothing.

    An address that is not in the configuration, or without any configuration, is looked at by itself. Exit code: 0 all
    is well, 1 an error, 4 warnings only.
    """
    from loader.doctor.finding import exit_code

    session: Session = context.obj
    found = _findings(session, source)
    if session.output.as_json:
        session.output.document(found)
    else:
        _show(session.output, found)
    raise typer.Exit(exit_code(found))


def _findings(session: Session, source: str) -> list[Finding]:
    by_itself = "://" in source and not (config.configured(session.file) and session.load().at(source))
    return page.of_address(source) if by_itself else page.of_source(session.settings(source))


def _show(output: Output, found: list[Finding]) -> None:
    width = max(len(one.name) for one in found)
    for one in found:
        output.line(f"{one.severity:7}  {one.name:{width}}  {one.what}")
        if one.cure:
            output.line(f"{'':7}  {'':{width}}  what to do: {one.cure}")
    worst = {name: sum(one.severity == name for one in found) for name in ("error", "warning")}
    output.line(f"{worst['error']} errors, {worst['warning']} warnings, {len(found)} checks")
