"""The configuration folder of Hadoop's daemons and clients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.lang=ALL-UNNAMED")
"""Options of Java for a daemon."""
_LOGGING = """
log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %c: %m%n
"""


def configure(folder: Path, sites: Mapping[str, Mapping[str, str]]) -> Path:
    """Write a folder with the logging of daemons and with settings; return it.

    Args:
        folder: the folder, which need not exist.
        sites: settings by the name of their file, such as `core` for core-site.xml.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j.properties").write_text(_LOGGING)
    for name, settings in sites.items():
        (folder / f"{name}-site.xml").write_text(site_xml(settings))
    return folder


def site_xml(settings: Mapping[str, str]) -> str:
    """Return the text of a file of settings."""
    lines = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"
