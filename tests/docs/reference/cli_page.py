"""docs/reference/cli.md: each command with its help, arguments and options."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields

import click

from ibb.cli.main import ibb
from ibb.server.config import Config

from .markdown import NOTICE, code, fenced, table

SETTINGS = frozenset(setting.name for setting in fields(Config))


def cli_page() -> str:
    """Return the page."""
    parts = [NOTICE, "# Command line\n", "What `--help` says, command by command.\n"]
    for path, command in commands():
        parts += [f"## {path}\n", _usage(path, command), _help(command)]
        parts += list(_options(command))
    return "\n".join(parts)


def commands(
    path: str = "ibb", command: click.Command = ibb
) -> Iterator[tuple[str, click.Command]]:
    """Yield each command behind its group, with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from commands(f"{path} {name}", command.commands[name])


def _usage(path: str, command: click.Command) -> str:
    words = [path, "[OPTIONS]"]
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            name = (parameter.name or "").upper()
            several = "..." if parameter.nargs != 1 else ""
            words.append(f"{name}{several}" if parameter.required else f"[{name}]{several}")
    if isinstance(command, click.Group):
        words.append("COMMAND [ARGS]...")
    return fenced(" ".join(words)) + "\n"


def _help(command: click.Command) -> str:
    r"""Return the help: blocks behind `\b` keep their lines."""
    blocks = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        kept = block.startswith("\b")
        text = block.removeprefix("\b").strip("\n")
        blocks.append(fenced(text) if kept else _escaped(text))
    return "\n\n".join(blocks) + "\n"


def _escaped(text: str) -> str:
    """Return prose in which `<` and `*` are what they are."""
    return re.sub(r"([<*])", r"\\\1", text)


def _options(command: click.Command) -> Iterator[str]:
    rows, settings = [], 0
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        if command.name == "serve" and parameter.name in SETTINGS:
            settings += 1
            continue
        rows.append((_names(parameter), _meaning(parameter)))
    if rows:
        yield table(("option", "meaning"), rows)
    if settings:
        yield "The other options are the settings of the server: [Options](options.md).\n"


def _names(option: click.Option) -> str:
    names = ", ".join(code(name) for name in (*option.opts, *option.secondary_opts))
    return names if option.is_flag else f"{names} {_kind(option)}"


def _kind(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " or ".join(str(choice) for choice in option.type.choices)
    return option.type.name.upper().replace(" RANGE", "")


def _meaning(option: click.Option) -> str:
    text = option.help or ""
    default = option.default
    if option.show_default and isinstance(default, int | float | str) and not option.is_flag:
        text += f" [default: {default}]"
    if option.required:
        text += " [required]"
    return _escaped(text)
