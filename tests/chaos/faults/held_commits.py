"""Commits that are in the log, but that no session sees: with semi-synchronous replication they wait for a replica."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from infra.servers import Kind
from tests.chaos.access.source import Session

_NAMES = {"mysql": ("source", "replica"), "mariadb": ("master", "slave")}


@contextmanager
def held_commits(session: Session, kind: Kind) -> Iterator[None]:
    """Let commits wait after they are written to the log, until the end of the block."""
    source, replica = _NAMES[kind]
    if kind == "mysql":
        session.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")  # an error if it is there
    settings = {"timeout": "60000", f"wait_no_{replica}": "ON", "wait_point": "AFTER_SYNC", "enabled": "ON"}
    try:
        for name, value in settings.items():
            session.execute(f"SET GLOBAL rpl_semi_sync_{source}_{name} = {value}")
        yield
    finally:
        session.execute(f"SET GLOBAL rpl_semi_sync_{source}_enabled = OFF")
