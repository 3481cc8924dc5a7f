"""The command that downloads the jars of Spark jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.session import Session

if TYPE_CHECKING:
    from loader.config.file import Config


def jars(
    context: typer.Context,
    store: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Store of staged files or tables: s3; repeat for more.", show_default=False),
    ] = [],  # noqa: B006 - typer copies it
    catalog: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Database of a JDBC catalog: mysql, postgresql or sqlite; repeat for more.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    mirror: Annotated[
        str, typer.Option(metavar="URL", help="Maven repository to download from.", show_default=False)
    ] = "",
) -> None:
    """Download the locked jars of Spark jobs, verify their checksums, and print their folder.

    Without options, download the jars that the configuration needs; without a configuration, Iceberg and S3.
    """
    from loader.config.file import configured
    from loader.jars.lock import ALWAYS, DEFAULT
    from loader.jars.resolve import spark_jars

    session: Session = context.obj
    chosen = [ALWAYS, *store, *catalog]
    if not store and not catalog:
        chosen = needed(session.load()) if configured(session.file) else list(DEFAULT)
    folder = spark_jars(tuple(dict.fromkeys(chosen)), mirror=mirror)
    if session.output.as_json:
        session.output.document({"folder": str(folder), "parts": chosen})
    else:
        session.output.line(str(folder))


def needed(config: Config) -> list[str]:
    """Return the parts of the lock that a configuration needs."""
    from loader.jars.lock import ALWAYS, parts

    places = (config.staging.root, config.warehouse.path, config.warehouse.uri)
    uri = config.warehouse.uri.removeprefix("jdbc:")
    found = [ALWAYS]
    found += ["s3"] if any(place.startswith(("s3://", "s3a://")) for place in places) else []
    found += [name for name in parts() if uri.startswith(f"{name}:")]
    return found
