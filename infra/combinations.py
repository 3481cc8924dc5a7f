"""The supported combinations of Airflow and Spark besides the locked one: constraints, environments, and their tests.

python -m infra.combinations constraints               write infra/versions/NAME.txt
python -m infra.combinations environment NAME FOLDER   install a combination, with all that the tests need
python -m infra.combinations test NAME [ARGUMENTS]     install it in the cache folder, and run its tests or a pytest
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from infra.servers.cache import cache_folder

_ROOT = Path(__file__).resolve().parents[1]
_LOCKED = _ROOT / "constraints.txt"
_EXTRAS = "spark,airflow,openlineage,s3,hdfs"
_SOME = ("test_modes.py", "columns/test_schema.py", "renames/test_renames.py")
_ALWAYS = ("tests/dags", *(f"tests/integration/materialise/{name}" for name in _SOME))
_OF_SPARK = (
    "tests/integration/materialise",
    "tests/e2e/clusters/test_local_cluster.py",
    "tests/e2e/clusters/test_remote_staging.py",
)
_OF_AIRFLOW = ("connection", "forms", "heals")
_LONG = ("approval", "repair")
_LONG_OF_AIRFLOW = ("load", "operators", "sensor", "skip")
NEWEST = ("3.3.2", "4.1.3")
"""The locked versions of Airflow and Spark."""


class Combination(NamedTuple):
    """A version of Airflow and one of Spark.

    Attributes:
        airflow: the newest release of its line.
        spark: the newest release of its line with a pyspark-client of the same version.
        limits: constraints of other packages, which are newer than that Airflow.
    """

    airflow: str
    spark: str
    limits: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name, such as airflow-3.1-spark-4.0."""
        return f"airflow-{_line(self.airflow)}-spark-{_line(self.spark)}"

    @property
    def constraints(self) -> Path:
        """The file of constraints for pip."""
        return _ROOT / "infra" / "versions" / f"{self.name}.txt"

    @property
    def pins(self) -> tuple[str, ...]:
        """What distinguishes the combination from the locked one."""
        spark = (f"pyspark=={self.spark}", f"pyspark-client=={self.spark}")
        return (f"apache-airflow=={self.airflow}", *spark, *self.limits)

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests: all that a line of Airflow or of Spark needs if the other one is the newest, else some of both."""
        airflow = _of_airflow(_OF_AIRFLOW) if self.spark == NEWEST[1] else ()
        return (*_ALWAYS, *airflow, *(_OF_SPARK if self.airflow == NEWEST[0] else ()))

    @property
    def long_tests(self) -> tuple[str, ...]:
        """The tests that need LOADER_SWEEP."""
        return _of_airflow((*_LONG, *(_LONG_OF_AIRFLOW if self.spark == NEWEST[1] else ())))


def _of_airflow(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"tests/e2e/airflow/test_{name}.py" for name in names)


_LIMITS = ("cadwyn<7", "sqlalchemy<2.1")
COMBINATIONS = (
    Combination(NEWEST[0], "4.0.4"),
    Combination("3.2.2", NEWEST[1], _LIMITS),
    Combination("3.2.2", "4.0.4", _LIMITS),
    Combination("3.1.8", NEWEST[1], _LIMITS),
    Combination("3.1.8", "4.0.4", _LIMITS),
)


def write_constraints(combination: Combination) -> None:
    """Resolve a combination. Every package that can stays at its locked version."""
    file = combination.constraints
    file.parent.mkdir(exist_ok=True)
    shutil.copy(_LOCKED, file)  # uv prefers the versions in its output file
    options = ["--universal", "--python-version", "3.11", "--all-extras", "--no-header", "--no-annotate", "--quiet"]
    pins = "\n".join(combination.pins)
    _uv("pip", "compile", "pyproject.toml", *options, "--constraints", "-", "--output-file", str(file), given=pins)


def install(combination: Combination, folder: Path) -> Path:
    """Install the loader and its tests with the constraints of a combination; return the folder of its programs."""
    _uv("venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder))
    python = folder / "bin" / "python"
    options = ["--quiet", "--python", str(python), "--constraints", str(combination.constraints)]
    _uv("pip", "install", *options, "--editable", f".[{_EXTRAS}]", "--group", "dev")
    return python.parent


def run_tests(combination: Combination, programs: Path, arguments: Sequence[str] = ()) -> bool:
    """Run pytest in an installed combination, and return whether all tests passed.

    Args:
        combination: that is installed.
        programs: the folder that `install` returned.
        arguments: of pytest. Without them, all tests of the combination run.
    """
    if arguments:
        return _pytest(programs, arguments, os.environ)
    short = {name: value for name, value in os.environ.items() if name != "LOADER_SWEEP"}
    passed = _pytest(programs, combination.long_tests, short | {"LOADER_SWEEP": "1"})
    return _pytest(programs, combination.tests, short) and passed


def _pytest(programs: Path, arguments: Sequence[str], given: Mapping[str, str]) -> bool:
    variables = {name: value for name, value in given.items() if name != "LOADER_JARS"}
    variables["PATH"] = f"{programs}:{variables['PATH']}"
    argv = [str(programs / "pytest"), "-p", "no:cacheprovider", *arguments]
    return subprocess.run(argv, cwd=_ROOT, env=variables, check=False).returncode == 0


def _uv(*arguments: str, given: str = "") -> None:
    subprocess.run([_ROOT / "infra" / "uv.sh", *arguments], cwd=_ROOT, input=given, text=True, check=True)


def _line(release: str) -> str:
    return ".".join(release.split(".")[:2])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["constraints"]:
            for one in COMBINATIONS:
                write_constraints(one)
        case ["environment", name, folder]:
            print(install({one.name: one for one in COMBINATIONS}[name], Path(folder)))
        case ["test", name, *arguments]:
            chosen = {one.name: one for one in COMBINATIONS}[name]
            programs = install(chosen, cache_folder() / "combinations" / name)
            sys.exit(not run_tests(chosen, programs, arguments))
        case _:
            sys.exit(__doc__)
