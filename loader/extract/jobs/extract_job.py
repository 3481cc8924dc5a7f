"""The Spark job that extracts planned intervals: `spark-submit extract_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.extract.backlog import stage_backlog
from loader.extract.spec import ExtractSpec
from loader.spark.job import job_main
from loader.spark.workers import workers_of

if __name__ == "__main__":
    job_main(lambda spark, spec: stage_backlog(workers_of(spark, spec), spec), ExtractSpec)
