"""The Spark job that merges a source's tables: `spark-submit materialise_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.materialise.merge.source_run import materialise
from loader.materialise.spec import MaterialiseSpec
from loader.spark.job import job_main

if __name__ == "__main__":
    job_main(materialise, MaterialiseSpec)
