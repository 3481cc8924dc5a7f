"""The command that shows the status pages in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session

if TYPE_CHECKING:
    from loader.cli import page_server
    from loader.page import host, site
    from loader.page.reports import report_cache, source_report
else:
    host, page_server = lazily("loader.page.host"), lazily("loader.cli.page_server")
    report_cache, site = lazily("loader.page.reports.report_cache"), lazily("loader.page.site")
    source_report = lazily("loader.page.reports.source_report")


def ui(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="Port; 0 for any free one.")] = 8765,
    address: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address or name of this machine to listen on. The connection is not encrypted.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Show the status of all sources as pages for a browser, until Ctrl-C. The pages change nothing."""
    session: Session = context.obj
    config = session.load()
    reports = report_cache.ReportCache(source_report.ReportReader(config.source).read)
    pages = site.Site(list(config.sources), reports, host.CommandLine(session.links))
    with page_server.serving(pages, address, port) as server:
        if session.output.as_json:
            session.output.document({"url": server.url})
        else:
            session.output.line(f"the status pages are at {server.url} until Ctrl-C")
        server.serve_forever()
