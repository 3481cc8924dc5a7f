"""Keys of the configuration: what to write instead of an unknown one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel


def describe_unknown_key(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    """Return the message for an unknown key, with the most similar known key.

    Args:
        model: of the whole configuration.
        place: names and indexes from the model to the key.
    """
    kind: Any = model
    for part in place[:-1]:
        kind = _inside(kind, str(part))
    names = list(kind.model_fields) if _is_model(kind) else []
    like = get_close_matches(str(place[-1]), names, n=1)
    return f"there is no such key, did you mean {like[0]}?" if like else "there is no such key"


def _inside(kind: Any, part: str) -> Any:
    """Return the type of a field of a model, or of the entries of a table or list."""
    if _is_model(kind):
        return kind.model_fields[part].annotation
    return [one for one in get_args(kind) if one is not ...][-1]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
