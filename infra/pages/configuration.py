"""The page of configuration keys: types, defaults and limits from the models, the meaning from configuration.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from loader.config.file import Config

MEANINGS = Path(__file__).with_name("configuration.toml")
_LIMITS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "below"}
_HEAD = """# Configuration

One TOML file holds the whole configuration. `--config FILE` names it, else `LOADER_CONFIG`, else `./loader.toml`.
`loader config check` validates the file and connects to nothing. `loader config schema > loader.schema.json` writes its
JSON Schema, with which an editor completes keys. Unknown keys are errors.

This page is generated from the code that reads the file.

## Environment variables

| variable | meaning |
|---|---|
| `LOADER_CONFIG` | The configuration file. |
| `LOADER_CACHE` | The folder for compiled kernels, jars and the demo. The default is `~/.cache/binlog-loader`. |
| `LOADER_IVY_SETTINGS` | An Ivy settings file for `loader jars`, for a private repository. |
| `LOADER_CHECK_KERNELS` | `1` compiles kernels that check every array index. For tests. |

Secrets that the configuration gives as `env:NAME` are read from the environment variable `NAME`.
"""


class Key(NamedTuple):
    """One key of the configuration, or a table of keys.

    Attributes:
        path: with `NAME` for the name of a source.
        schema: its JSON Schema, without references.
        required: whether the table that holds it must have it.
        table: whether it holds other keys.
    """

    path: str
    schema: dict[str, Any]
    required: bool
    table: bool


def keys() -> list[Key]:
    """Return every key: of each table first its own keys, then the tables inside it."""
    schema = Config.model_json_schema()
    return list(_keys(schema, schema["$defs"], ""))


def configuration_page() -> str:
    """Return the page as Markdown.

    Raises:
        KeyError: configuration.toml does not describe a key.
    """
    meanings = tomllib.loads(MEANINGS.read_text(encoding="utf-8"))
    return _HEAD + "".join(_entry(key, meanings[key.path]) for key in keys())


def _keys(schema: dict[str, Any], models: dict[str, Any], prefix: str) -> Iterator[Key]:
    needed = schema.get("required", ())
    tables = []
    for name, field in schema["properties"].items():
        model, place = _model(field, models)
        key = Key(f"{prefix}{name}", model or field, name in needed, model is not None)
        if model is None:
            yield key
        else:
            tables.append((key, f"{key.path}{place}."))
    for key, inside in tables:
        yield key
        yield from _keys(key.schema, models, inside)


def _model(field: dict[str, Any], models: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the model that a field holds, or None, and what names an entry of the field."""
    holder, place = (field["additionalProperties"], ".NAME") if field.get("type") == "object" else (field, "")
    holder = holder.get("items", holder) if isinstance(holder, dict) else {}
    reference = holder.get("$ref", "").removeprefix("#/$defs/")
    return (models[reference], place) if reference else (None, "")


def _entry(key: Key, meaning: str) -> str:
    level = "##" if key.table else "###"
    facts = "" if key.table else f"{_facts(key)}\n\n"
    return f"\n{level} `{key.path}` {{ #{key.path} }}\n\n{facts}{meaning.strip()}\n"


def _facts(key: Key) -> str:
    """Return the type, the limits and the default, as one line."""
    default = key.schema.get("default")
    shown = f"Default: `{json.dumps(default)}`" if default not in (None, "", [], {}) else "Not set by default"
    return " · ".join([_type(key.schema), *_limits(key.schema), "**Required**" if key.required else shown])


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "One of " + ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"] if one != "")
    if schema["type"] == "array":
        return f"List of {_plural(schema['items']['type'])}"
    if schema["type"] == "object":
        values = schema["additionalProperties"]
        return "Table" if values is True else f"Table of {_plural(values['type'])}"
    return str(schema["type"]).capitalize()


def _plural(kind: str) -> str:
    return f"{kind}s"


def _limits(schema: dict[str, Any]) -> list[str]:
    found = [f"{word} {schema[name]}" for name, word in _LIMITS.items() if name in schema]
    return [*found, f"matches `{schema['pattern']}`"] if "pattern" in schema else found
