"""Extracting planned intervals one after the other, for as long as a run may take."""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any

from loader.extract.extraction import extract
from loader.extract.spec import BacklogResult, ExtractResult, ExtractSpec, backlog_result
from loader.spark.job import failure
from loader.spark.progress import Progress
from loader.spark.workers import Workers

_LOG = logging.getLogger(__name__)


def extract_backlog(workers: Workers, spec: ExtractSpec) -> tuple[list[ExtractResult], dict[str, Any] | None]:
    """Stage the planned intervals from `start_seqno` up to `through_seqno`, until the time of the spec is over.

    Returns:
        The staged intervals in order, and why the interval after them is not staged: in the form of
            `LoaderError.as_dict()`, or None if it was not started.

    Raises:
        LoaderError: the first interval could not be extracted.
    """
    extracts: list[ExtractResult] = []
    start, end = spec.start_seqno, monotonic() + spec.seconds
    while not extracts or (start < spec.through_seqno and monotonic() < end):
        try:
            extracts.append(extract(workers, spec.model_copy(update={"start_seqno": start})))
        except Exception as error:
            if not extracts:
                raise
            _LOG.error("the interval at %s could not be extracted", start, exc_info=error)
            return extracts, failure(error)
        start = extracts[-1].stop_seqno
        _LOG.info("staged %s up to %s", extracts[-1].start, extracts[-1].stop)
        _report(extracts)
    return extracts, None


def _report(extracts: list[ExtractResult]) -> None:
    rows = sum(rows.inserts + rows.updates + rows.deletes for one in extracts for rows in one.tables)
    Progress("log", len(extracts), 0, "intervals", rows, sum(one.bytes for one in extracts)).report()


def stage_backlog(workers: Workers, spec: ExtractSpec) -> BacklogResult:
    """Stage the planned intervals, and report them as one.

    Raises:
        LoaderError: see `extract_backlog`.
    """
    return backlog_result(*extract_backlog(workers, spec))
