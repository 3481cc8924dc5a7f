"""The doctor's whole page: of a configured source, of a server, or of log files."""

from __future__ import annotations

from loader.doctor import files, here, lake
from loader.doctor.finding import Finding, examine, of_error, ok
from loader.doctor.server import server_findings
from loader.errors import LoaderError
from loader.model.identity import Identity
from loader.pipeline import chain_of
from loader.pipeline.retention import needed_from
from loader.reader.uri import resolve, server_of
from loader.settings import SourceSettings
from loader.staging.documents import TableFilter
from loader.store.opening import open_store
from loader.submit import run
from loader.transport.network import NetworkTransport

_EVERYTHING = TableFilter(include=("*.*",))


def of_source(settings: SourceSettings) -> list[Finding]:
    """The page of a source of the configuration."""
    expected, needed, chain = _read_so_far(settings)
    transport = settings.transport
    found = chain + server_findings(
        settings.server,
        settings.tables,
        transport.open,
        expected=expected,
        needed=needed,
        min_hours=settings.min_runway_hours,
    )
    return found + examine(
        [
            *(files.checks(transport.files, transport.path) if transport.kind == "file" else []),
            *here.checks(),
            ("store", lambda: lake.store_works(open_store(settings.staging_root))),
            ("spark", lambda: lake.by_spark(open_store(settings.staging_root), settings.catalog, settings.spark, run)),
        ]
    )


def of_address(uri: str) -> list[Finding]:
    """The page of a server or of log files that no configuration names.

    Raises:
        UsageError: an address of another kind.
    """
    server = server_of(uri)
    if server is not None:
        return server_findings(server, _EVERYTHING, lambda: NetworkTransport(server)) + examine(here.checks())
    return examine([*files.checks(lambda: resolve(uri), uri), *here.checks()])


def _read_so_far(settings: SourceSettings) -> tuple[Identity | None, str, list[Finding]]:
    """The server that was read, and the oldest log file that is not staged; or why that cannot be known."""
    try:
        chain = chain_of(settings)
        generation = chain.generation()
        if generation is None:
            return None, "", [ok("chain", "nothing was loaded from this source yet")]
        needed = needed_from(chain, generation)
    except LoaderError as failed:
        return None, "", [of_error("chain", failed)]
    return generation.identity, needed.file, [ok("chain", f"staged up to {needed}")]
