"""The Spark job that restores staged files: `spark-submit restore_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.extract.extraction import restore
from loader.extract.spec import ExtractSpec
from loader.spark.job import job_main
from loader.spark.workers import workers_of

if __name__ == "__main__":
    job_main(lambda spark, spec: restore(workers_of(spark, spec), spec), ExtractSpec)
