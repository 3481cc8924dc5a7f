"""Values of operators that may be templates. A template makes a text of every value. Pure."""

from __future__ import annotations

from loader.errors import UsageError

_WORDS = {"true": True, "false": False, "": False, "none": False}
"""What templates make of flags."""


def flag(name: str, value: object) -> bool:
    """Return the value of a flag, which a template has made a text.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(value, bool) or value is None:
        return bool(value)
    word = str(value).strip().lower()
    if word not in _WORDS:
        raise UsageError(f"{name} must be true or false", why=f"it is {value!r}", argument=name)
    return _WORDS[word]


def table_names(value: object) -> list[str]:
    """Return the names of tables without the spaces around them, and without empty lines; none means all.

    Raises:
        UsageError: they are no list, such as the text that a template makes of a list.
    """
    names = value or []
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return [text for name in names if (text := name.strip())]
    raise UsageError(
        "tables must be a list of names as schema.table",
        why=f"it is {value!r}",
        hint="give a list whose items may be templates; or give the DAG render_template_as_native_obj=True",
        argument="tables",
    )
