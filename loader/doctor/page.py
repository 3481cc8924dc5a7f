"""The page of all checks: of a configured source, of a server, or of log files."""

from __future__ import annotations

from loader.doctor import files, lake, this_machine
from loader.doctor.finding import Check, Finding, examine, ok, warning
from loader.doctor.replica import is_readable
from loader.doctor.server import server_findings
from loader.model.identity import Identity
from loader.pipeline import chain_of
from loader.pipeline.chain.failover import can_follow, check_continuity
from loader.pipeline.reports.retention import oldest_needed_position
from loader.pipeline.upkeep.quarantine_release import quarantines_of
from loader.reader.locations.uri import resolve, server_of
from loader.settings import SourceSettings
from loader.source.continuity import AnotherServer, LogRenamed
from loader.spark.submit import run
from loader.staging.documents import TableFilter
from loader.store.registry import open_store
from loader.transport.network import NetworkTransport

_EVERYTHING = TableFilter(include=("*.*",))


def of_source(settings: SourceSettings) -> list[Finding]:
    """Return the findings about a source of the configuration."""
    transport = settings.transport
    found = examine([("chain", lambda: continues(settings))])
    found += server_findings(
        settings.server,
        settings.tables,
        transport.open,
        needed=lambda identity: _needed(settings, identity),
        min_hours=settings.min_runway_hours,
        archived=bool(transport.archive),
        markers=settings.skip.markers(),
    )
    return found + examine(
        [
            *(files.checks(transport.files, transport.path) if transport.kind == "file" else []),
            *this_machine.checks(),
            *_checks_of_replica(settings),
            ("quarantine", lambda: quarantined(settings)),
            ("store", lambda: lake.store_works(open_store(settings.staging_root))),
            ("spark_network", lambda: lake.between_executors(settings.spark, secrets=_has_secrets(settings))),
            ("hdfs_token", lambda: lake.access_of_tasks(settings.staging_root, settings.spark)),
            ("catalog_type", lambda: lake.untested(settings.catalog)),
            ("spark", lambda: lake.by_spark(open_store(settings.staging_root), settings.catalog, settings.spark, run)),
        ]
    )


def _checks_of_replica(settings: SourceSettings) -> list[Check]:
    replica = settings.read_from
    return [("read_from", lambda: is_readable(settings.server, replica))] if replica else []


def _has_secrets(settings: SourceSettings) -> bool:
    return bool(settings.catalog.secrets or (settings.server.password and settings.transport.kind == "network"))


def of_address(uri: str) -> list[Finding]:
    """Return the findings about a server or log files that no configuration names.

    Raises:
        UsageError: the address is of another kind.
    """
    server = server_of(uri)
    if server is not None:
        return server_findings(server, _EVERYTHING, lambda: NetworkTransport(server)) + examine(this_machine.checks())
    return examine([*files.checks(lambda: resolve(uri), uri), *this_machine.checks()])


def continues(settings: SourceSettings) -> Finding:
    """Check that the log continues where the loader stopped reading."""
    chain = chain_of(settings)
    generation = chain.generation()
    if generation is None:
        return ok("chain", "nothing was loaded from this source yet")
    known = chain.newest_checkpoint(generation)
    try:
        check_continuity(settings, generation, known)
    except (AnotherServer, LogRenamed) as other:
        if not known.gtids or not can_follow(generation, other):
            raise
        cure = "nothing if it took over: the next run follows it by GTIDs; otherwise set the source to the old server"
        return warning("chain", other.what, cure)
    return ok("chain", f"staged up to {known.position}, and the log continues there")


def quarantined(settings: SourceSettings) -> list[Finding]:
    """Return a warning for each quarantined table."""
    return [
        warning(
            "quarantine",
            f"{table.table} is quarantined since {table.since:%F %T}: {table.error['what']}",
            table.error_with_release()["hint"],
        )
        for table in quarantines_of(settings).all().values()
    ]


def _needed(settings: SourceSettings, identity: Identity) -> str:
    """Return the oldest log file of this server that is not staged; empty if none of its files was read."""
    chain = chain_of(settings)
    generation = chain.generation()
    if generation is None or not generation.identity.same_server(identity):
        return ""
    return oldest_needed_position(chain, generation).file
