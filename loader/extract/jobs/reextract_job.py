"""The Spark job that compares an interval with a second extraction.

Usage: `spark-submit reextract_job.py --spec FILE --result FILE`.
"""

from __future__ import annotations

from loader.extract.extraction import reextract
from loader.extract.spec import ExtractSpec
from loader.spark.job import job_main
from loader.spark.workers import workers_of

if __name__ == "__main__":
    job_main(lambda spark, spec: reextract(workers_of(spark, spec), spec), ExtractSpec)
