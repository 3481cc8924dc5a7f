"""The Spark job that extracts an interval again, to compare: `spark-submit again_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.extract.run import again
from loader.extract.spec import ExtractSpec
from loader.extract.workers import workers_of
from loader.job import job_main

if __name__ == "__main__":
    job_main(lambda spark, spec: again(workers_of(spark), spec), ExtractSpec)
