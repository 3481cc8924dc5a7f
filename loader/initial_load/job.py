"""The Spark job that stages initial loads: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.initial_load.run import stage_tables
from loader.initial_load.spec import InitialLoadSpec
from loader.spark.job import job_main
from loader.spark.workers import workers_of

if __name__ == "__main__":
    job_main(lambda spark, spec: stage_tables(workers_of(spark, spec), spec), InitialLoadSpec)
