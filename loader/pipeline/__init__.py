"""The use cases, and the only package that knows the order of the stages.

    initial load:  begin -> snapshot job -> load job
    delta:         snapshot position -> extract job -> materialise job

Each is safe to run again at any time: what is done already is found and not done twice.
"""

from loader.pipeline.following import follow_to
from loader.pipeline.jobs import Job, extract_job, load_job, materialise_job, snapshot_job
from loader.pipeline.planning import IntervalChosen, begin, chain_of, snapshot_position, unfinished
from loader.pipeline.retention import source_runway
from loader.pipeline.states import IntervalState, SourceStatus, TableState, intervals, status

__all__ = [
    "IntervalChosen",
    "IntervalState",
    "Job",
    "SourceStatus",
    "TableState",
    "begin",
    "chain_of",
    "extract_job",
    "follow_to",
    "intervals",
    "load_job",
    "materialise_job",
    "snapshot_job",
    "snapshot_position",
    "source_runway",
    "status",
    "unfinished",
]
