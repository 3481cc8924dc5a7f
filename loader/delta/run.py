"""Extraction and materialisation one behind the other in one Spark session: Spark starts once."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from loader.delta.spec import DeltaResult, DeltaSpec
from loader.extract.run import extract
from loader.extract.spec import ExtractResult
from loader.job import failure
from loader.materialise.run import materialise
from loader.materialise.warehouse import Warehouse

_LOG = logging.getLogger(__name__)


def delta(spark: SparkSession, spec: DeltaSpec) -> DeltaResult:
    """Do it all. What is staged before an interval that cannot be extracted is applied all the same.

    Raises:
        LoaderError: not even the first interval could be extracted, or no table could be begun.
    """
    with ThreadPoolExecutor(1) as beside:
        # Spark and Iceberg take a second to load all that a first statement needs, while Python workers extract.
        ready = beside.submit(Warehouse, spark, spec.materialise.catalog, spec.materialise.rules)
        extracts, failed = _extracted(spark, spec)
        ready.result()
    through = spec.materialise.model_copy(update={"through_seqno": extracts[-1].stop_seqno})
    return DeltaResult(extracts=tuple(extracts), materialise=materialise(spark, through), failed=failed)


def _extracted(spark: SparkSession, spec: DeltaSpec) -> tuple[list[ExtractResult], dict[str, Any] | None]:
    extracts: list[ExtractResult] = []
    for one in spec.extracts:
        try:
            extracts.append(extract(spark, one))
        except Exception as error:
            if not extracts:
                raise
            _LOG.error("the interval at %s could not be extracted", one.start_seqno, exc_info=error)
            return extracts, failure(error)
        _LOG.info("staged %s up to %s", extracts[-1].start, extracts[-1].stop)
    return extracts, None
