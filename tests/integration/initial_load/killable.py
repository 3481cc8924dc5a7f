"""Stages the loads of a spec with one thread, in a process that a test can kill: `python -m ... SPEC`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from loader.initial_load.run import stage_tables
from loader.initial_load.spec import InitialLoadSpec
from loader.spark.workers import Threads

_CHECKOUT = Path(__file__).resolve().parents[3]


def stage_in_process(spec: InitialLoadSpec, file: Path, failpoint: str) -> int:
    """Return the exit code of a process that stages the loads; it is killed at the failpoint."""
    file.write_text(spec.model_dump_json())
    argv = [sys.executable, "-m", __name__, str(file)]
    return subprocess.run(
        argv, cwd=_CHECKOUT, env=os.environ | {"LOADER_FAILPOINT": failpoint}, check=False, timeout=120
    ).returncode


if __name__ == "__main__":
    stage_tables(Threads(1), InitialLoadSpec.model_validate_json(Path(sys.argv[1]).read_bytes()))
