"""The supported combinations of Airflow and Spark besides the locked one: constraints, and environments with them.

python -m infra.combinations constraints               write infra/versions/NAME.txt
python -m infra.combinations environment NAME FOLDER   install a combination, with all that the tests need
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parents[1]
_LOCKED = _ROOT / "constraints.txt"
_EXTRAS = "spark,airflow,openlineage,s3,hdfs"


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


_LIMITS = ("cadwyn<7", "sqlalchemy<2.1")
COMBINATIONS = (
    Combination("3.3.2", "4.0.4"),
    Combination("3.2.2", "4.1.3", _LIMITS),
    Combination("3.2.2", "4.0.4", _LIMITS),
    Combination("3.1.8", "4.1.3", _LIMITS),
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
        case _:
            sys.exit(__doc__)
