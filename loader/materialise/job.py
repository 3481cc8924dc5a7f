"""The Spark job that brings a source's tables up to date: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.job import job_main
from loader.materialise.run import materialise
from loader.materialise.spec import MaterialiseSpec

if __name__ == "__main__":
    job_main(materialise, MaterialiseSpec)
