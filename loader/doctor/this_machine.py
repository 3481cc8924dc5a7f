"""Checks of this machine: Java, and the versions of installed packages."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from collections.abc import Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from loader.doctor.finding import Check, Finding, error, ok, warning
from loader.spark.submit import java_program

_JAVA = (17, 21)  # versions that Spark 4.0 and 4.1 support: its documentation, "Downloading"
_RANGES = ("apache-airflow", "apache-airflow-providers-apache-spark", "pyspark", "pyspark-client")
"""Packages with a range of versions. Others are only checked if they have one version."""
_TWINS = ("pyspark", "pyspark-client")  # both install into one folder; the later one overwrites files of the other
_JAVA_SECONDS = 60


def checks() -> list[Check]:
    """Return the checks of this module."""
    return [("java", lambda: java(_java_says())), ("packages", lambda: packages(installed(), _requirements()))]


def java(says: str) -> Finding:
    """Check that Spark runs on this Java, given the output of `java -version`; empty without Java."""
    cure = "install Java 17 or 21, and name it in JAVA_HOME"
    found = re.search(r'version "(\d+)(?:\.(\d+))?[^"]*"', says)
    if not found:
        return error("java", "no Java was found" if not says else f"the version of Java is unknown: {says[:80]}", cure)
    release = int(found[2] or 0) if found[1] == "1" else int(found[1])  # 1.8 is Java 8
    version = found[0].partition(" ")[2].strip('"')
    if release < _JAVA[0]:
        return error("java", f"{version} is too old for Spark", cure)
    return ok("java", version) if release in _JAVA else warning("java", f"{version}: Spark is not tested with it", cure)


def _java_says() -> str:
    program = java_program()
    if program is None:
        return ""
    done = subprocess.run([program, "-version"], check=False, capture_output=True, text=True, timeout=_JAVA_SECONDS)
    return done.stderr + done.stdout


def installed() -> dict[str, str]:
    """Return the versions of installed distributions. Python imports the first on the path of several with one name."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        if one.name:
            found.setdefault(one.name.lower(), one.version)
    return found


def _requirements() -> list[str]:
    return importlib.metadata.requires("binlog-loader") or []


def packages(versions: Mapping[str, str], requirements: list[str]) -> Finding | list[Finding]:
    """Check pinned packages, and the ranges of Airflow and Spark. Packages that are not installed are ignored."""
    wanted = {
        one.name: one.specifier
        for one in map(Requirement, requirements)
        if one.name in _RANGES or str(one.specifier).startswith("==")
    }
    cure = "reinstall with: pip install -c constraints.txt"
    wrong = [
        error("packages", f"{name} {versions[name]} is installed, but the loader needs {_shown(limits)}", cure)
        for name, limits in wanted.items()
        if name in versions and not limits.contains(versions[name], prereleases=True)
    ]
    twins = {name: versions[name] for name in _TWINS if name in versions}
    if len(set(twins.values())) > 1:
        wrong.append(error("packages", f"{' and '.join(f'{n} {v}' for n, v in twins.items())} differ", cure))
    shown = [f"{name} {versions[name]}" for name in ("binlog-loader", *wanted) if name in versions]
    return wrong or ok("packages", ", ".join(dict.fromkeys(shown)))


def _shown(limits: SpecifierSet) -> str:
    """Return limits as people write them: a version, or the lower limit first."""
    one_by_one = sorted(str(limits).split(","), key=lambda limit: (limit[0] == "!", limit[0] == "<", limit))
    return ",".join(one_by_one).lstrip("=")
