"""The commands that check the configuration file and print its schema."""

from __future__ import annotations

import json

import typer

from loader.cli.command_group import CommandGroup
from loader.cli.session import Session

config = CommandGroup(help="Check the configuration file, or print its schema.")

SCHEMA_FILE = "loader.schema.json"


@config.command()
def check(context: typer.Context) -> None:
    """Validate the configuration file without connecting to anything."""
    from loader.resources import config_file

    session: Session = context.obj
    configuration = session.load()
    file = config_file(session.file)
    if session.output.as_json:
        session.output.document({"file": str(file), "sources": list(configuration.sources)})
    else:
        session.output.line(f"{file} is valid: sources {', '.join(configuration.sources)}")


@config.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors: loader config schema > loader.schema.json."""
    typer.echo(schema_text())


def schema_text() -> str:
    """Return the JSON Schema of the configuration file."""
    from loader.config.file import Config

    return json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False)
