"""The newest commit time of a published record, unless it cannot be right.

The clock of a server may have been wrong for a while, and a session of MariaDB can set its own time (`SET timestamp`).
One time in the future would otherwise count as the newest one forever.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from loader.staging.chain import PlanChain
from loader.staging.inventory import list_interval
from loader.staging.published import Published

_SKEW = timedelta(minutes=10)
"""By so much the clocks of server and store may differ."""


def newest_commit_time(chain: PlanChain, record: Published) -> datetime | None:
    """Return the newest commit time of the last interval of a record, or of the intervals before it.

    Return None if there is no commit, or if the commit would be later than the manifest of the interval.
    """
    if not record.committed_at:
        return None
    last = chain.manifest_stopping_at(record.generation, record.stop_seqno)
    text = (last.committed_at if last else "") or record.committed_at
    committed = datetime.fromisoformat(text).replace(tzinfo=UTC)
    staged = _staged_at(chain, record.generation, last.start_seqno) if last else datetime.now(UTC)
    return committed if committed <= staged + _SKEW else None


def _staged_at(chain: PlanChain, generation: str, start_seqno: int) -> datetime:
    """Return when an interval was staged, by the clock of the store."""
    stored = list_interval(chain.store, chain.source, generation, start_seqno).documents
    return stored["manifest.json"].modified
