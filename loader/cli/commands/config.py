"""The commands about the configuration file."""

from __future__ import annotations

import json

import typer

from loader.cli.session import Session

config = typer.Typer(help="The configuration file.", no_args_is_help=True, rich_markup_mode=None)

SCHEMA_FILE = "loader.schema.json"


@config.command()
def check(context: typer.Context) -> None:
    """Validate the configuration file; nothing is connected to."""
    from loader.resources import config_file

    session: Session = context.obj
    found = session.load()
    file = config_file(session.file)
    if session.output.as_json:
        session.output.document({"file": str(file), "sources": list(found.sources)})
    else:
        session.output.line(f"{file} is valid: sources {', '.join(found.sources)}")


@config.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors: loader config schema > loader.schema.json."""
    typer.echo(schema_text())


def schema_text() -> str:
    """The JSON Schema of the configuration file."""
    from loader.config import Config

    return json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False)
