"""The class of the `loader` command and of its groups: help texts name values, not types of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption


class CommandGroup(typer.Typer):
    """A group of commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """See typer.Typer."""
        return super().command(name, cls=_Command, **settings)


class _Command(TyperCommand):
    """Prints `--limit LIMIT` and `START` where typer prints `--limit <int range>` and `START <str>`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                parameter.display_type_rich = _no_type  # type: ignore[method-assign]
            elif isinstance(parameter, TyperOption) and not _has_choices(parameter):
                parameter.metavar = parameter.metavar or str(parameter.name).upper()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. An error about an option of `loader` itself says where it belongs."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if _misplaced(ctx, getattr(error, "option_name", None)):
                error.message += f"; it belongs before the command: {_moved(ctx, error.option_name)}"  # type: ignore[attr-defined]
            raise


def _misplaced(ctx: Any, option: str | None) -> bool:
    """Return whether an unknown option of a command is one of the options before the command."""
    before = {name for one in ctx.find_root().command.params for name in (*one.opts, *one.secondary_opts)}
    return option in before


def _moved(ctx: Any, option: str) -> str:
    root, _, command = ctx.command_path.partition(" ")
    value = " FILE" if option == "--config" else ""
    return f"{root} {option}{value} {command} ..."


def _no_type(ctx: Any) -> None:  # noqa: ARG001 - typer's signature
    return None


def _has_choices(option: TyperOption) -> bool:
    return bool(option.type_descriptor.is_choice)
