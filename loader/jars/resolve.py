"""Download of jars into a folder of the cache, named after the jars. Each jar is verified by its SHA-256.

The Ivy jar of pyspark downloads them, without starting Spark.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from loader.errors import DataError, RetryableError, UsageError
from loader.jars.lock import DEFAULT, LOCK, Jar, locked_jars
from loader.resources import cache_folder

SETTINGS = "LOADER_IVY_SETTINGS"
"""Environment variable with the path of an Ivy settings file."""

_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="loader" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = """
    <dependency org="{0}" name="{1}" rev="{2}" conf="default->master(*)" transitive="false">{artifact}</dependency>"""
_ARTIFACT = '<artifact name="{0}" type="{1}" ext="{1}" m:classifier="{2}"/>'
_MIRROR = """<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root={root}/></resolvers>
</ivysettings>
"""
_CURE = "for a private mirror: loader jars --mirror URL, or set LOADER_IVY_SETTINGS to an Ivy settings file"


def spark_jars(chosen: Sequence[str] = DEFAULT, *, mirror: str = "") -> Path:
    """Return the folder with the jars of these parts of the shipped lock, for the installed Spark; see `jars_folder`.

    Raises:
        UsageError: the lock has no jars for the installed Spark.
    """
    return jars_folder(LOCK, chosen, spark=_installed_spark(), mirror=mirror)


def jars_folder(lock: Path, chosen: Sequence[str] = (), *, spark: str = "", mirror: str = "") -> Path:
    """Return the folder with exactly the jars of these parts of the lock, or of all. Download missing jars.

    Args:
        lock: the file.
        chosen: the parts; empty: all.
        spark: line of Spark, see `loader.jars.lock.parts`.
        mirror: address of a Maven repository. Proxies come from `https_proxy` and `http_proxy`.

    Raises:
        UsageError: the part, Java or pyspark is missing.
        RetryableError: Ivy could not download a jar.
        DataError: a downloaded jar differs from the lock.
    """
    jars = locked_jars(lock, chosen, spark)
    text = lock.read_bytes() if not chosen else "\n".join(jar.sha256 for jar in jars).encode()
    folder = cache_folder() / "jars" / hashlib.sha256(text).hexdigest()[:16]
    if not folder.is_dir():
        with _locked(folder):
            if not folder.is_dir():
                _build(folder, jars, mirror)
    return folder


def java() -> str:
    """Return the Java of `$JAVA_HOME`, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for the exclusive lock of a folder, which may not exist yet, and hold it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(folder: Path, jars: Sequence[Jar], mirror: str) -> None:
    """Create the folder with a rename, so that it is complete or absent, also if a process dies."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a killed process; this process holds the lock
    partial.mkdir()
    try:
        _fetch(jars, partial, mirror)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(jars: Sequence[Jar], folder: Path, mirror: str) -> None:
    work = folder / "ivy"
    work.mkdir()
    lines = [_DEPENDENCY.format(jar.organisation, jar.name, jar.version, artifact=_artifact(jar)) for jar in jars]
    (work / "ivy.xml").write_text(_MODULE.format(dependencies="".join(lines)), encoding="utf-8")
    settings = os.environ.get(SETTINGS, "")
    if mirror:
        settings = str(work / "settings.xml")
        Path(settings).write_text(_MIRROR.format(root=quoteattr(mirror.rstrip("/") + "/")), encoding="utf-8")
    types = sorted({"jar", "bundle", *(jar.extension for jar in jars)})
    _run_ivy(work, settings, folder / "[artifact]-[revision](-[classifier]).[ext]", types)
    shutil.rmtree(work)
    for jar in jars:
        _check(folder / jar.file_name, jar)


def _artifact(jar: Jar) -> str:
    return _ARTIFACT.format(jar.name, jar.extension, jar.classifier) if jar.classifier else ""


def _run_ivy(work: Path, settings: str, pattern: Path, types: Sequence[str]) -> None:
    command = [java(), *proxy_options(os.environ), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-settings", settings] if settings else []
    command += ["-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache")]
    command += ["-types", *types, "-retrieve", str(pattern)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise UsageError(
            "Java was not found; it is needed to download the jars",
            why=str(error),
            hint="install Java 17 or 21; check with: loader doctor",
        ) from error
    if done.returncode:
        reason = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise RetryableError("the jars could not be downloaded", why=f"Ivy says:\n{reason}", hint=_CURE)


def proxy_options(environment: Mapping[str, str]) -> list[str]:
    """Return options of Java for the proxies in the usual environment variables."""
    options = []
    for scheme in ("http", "https"):
        text = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme.upper()}_PROXY")
        found = urlsplit(text if "://" in (text or "") else f"//{text}") if text else None
        if found and found.hostname:
            options.append(f"-D{scheme}.proxyHost={found.hostname}")
            options.append(f"-D{scheme}.proxyPort={found.port or (443 if scheme == 'https' else 80)}")
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY")
    if options and excluded:
        hosts = [host.strip() for host in excluded.split(",") if host.strip()]
        options.append(
            "-Dhttp.nonProxyHosts=" + "|".join(f"*{host}" if host.startswith(".") else host for host in hosts)
        )
    return options


def _check(path: Path, jar: Jar) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    if found != jar.sha256:
        raise DataError(
            "a downloaded jar differs from the locked one"
            if found
            else "a jar is missing, although Ivy reported success",
            why=f"it has the SHA-256 {found}, not {jar.sha256}" if found else "",
            hint="find out why the mirror serves another file, or use another mirror: loader jars --mirror URL",
            file=path.name,
        )


def _installed_spark() -> str:
    """Return the line of the installed pyspark, such as 4.1."""
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError as error:
        raise _without_pyspark() from error
    return ".".join(version.split(".")[:2])


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    found = [jar for folder in folders or [] for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not found:
        raise _without_pyspark()
    return found[0]


def _without_pyspark() -> UsageError:
    return UsageError("pyspark is not installed here", hint="pip install 'binlog-loader[spark]' -c constraints.txt")
