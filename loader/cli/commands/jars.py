"""The command that fetches the jars of Spark jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.session import Session

if TYPE_CHECKING:
    from loader.config import Config


def jars(
    context: typer.Context,
    store: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="What stages or holds tables: s3; repeat for more.", show_default=False),
    ] = [],  # noqa: B006 - typer's way
    catalog: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="The database of a JDBC catalog: postgresql or sqlite; repeat for more.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    mirror: Annotated[str, typer.Option(help="A Maven repository to fetch from.", show_default=False)] = "",
) -> None:
    """Fetch the locked jars of Spark jobs, check them, and print their folder.

    Without options: what the configuration needs; where there is none, Iceberg and S3.
    """
    from loader.config import configured
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
    """The parts of the lock that a configuration needs, of those that are in it."""
    from loader.jars.lock import ALWAYS, parts

    places = (config.staging.root, config.warehouse.path, config.warehouse.uri)
    uri = config.warehouse.uri.removeprefix("jdbc:")
    found = [ALWAYS]
    found += ["s3"] if any(place.startswith(("s3://", "s3a://")) for place in places) else []
    found += [name for name in parts() if uri.startswith(f"{name}:")]
    return found
