"""Settings of Spark jobs."""

from __future__ import annotations

import os
import re

from pydantic import BaseModel, ConfigDict

from loader.spark.job import is_local

DEPLOY_MODE = "spark.submit.deployMode"


class SparkSettings(BaseModel):
    """Settings of Spark jobs.

    Attributes:
        master: of Spark.
        conf: settings of Spark, which override those of the loader.
        jars: folder of the jars.
        package: address of an archive of `loader package`, for the executors of a cluster; empty without one.
        python: Python program of the executors, without a package; empty for the path of this process's program.
        hadoop_user: user of the jobs on HDFS; empty for the user of the process.
        tls_ca: PEM file of authorities that Java trusts in addition to its own; empty for none.
        results: address of the store where a driver on another machine leaves its result.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str = "local[*]"
    conf: dict[str, str] = {}
    jars: str
    package: str = ""
    python: str = ""
    hadoop_user: str = ""
    tls_ca: str = ""
    results: str = ""

    @property
    def local(self) -> bool:
        """Whether driver and executors are one process on this machine."""
        return is_local(self.master)

    @property
    def driver_elsewhere(self) -> bool:
        """Whether the cluster chooses a machine for the driver: deploy mode `cluster`."""
        return self.conf.get(DEPLOY_MODE) == "cluster"

    @property
    def threads(self) -> int:
        """Threads of the driver that do the work of executors; 0 with executors."""
        if not self.local:
            return 0
        found = re.match(r"local\[(\d+|\*)", self.master)
        if not found:
            return 1
        return (os.cpu_count() or 1) if found[1] == "*" else int(found[1])
