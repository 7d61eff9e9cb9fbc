"""What a job reads: a source and bounds, as options of the Spark data source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.pipeline.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SERVERS: Final = ("mariadb://", "mysql://", "ibb://")


def source_options(
    source: str, more: Iterable[str] = (), **given: str | Iterable[str] | None
) -> dict[str, str]:
    """
    Return options of the data source, those that are not given left out.

    Args:
        source: a directory, a URL of one, or a server.
        more: further options, each NAME=VALUE; they win.
        given: options by name; lists are joined by commas.

    Raises:
        OptionError: one of *more* is no such text.
    """
    options: dict[str, str] = {"url" if source.startswith(_SERVERS) else "path": source}
    for name, value in given.items():
        text = value if isinstance(value, str) or value is None else ",".join(value)
        if text:
            options[name] = text
    for text in more:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise OptionError("--option", f"'{text}' is not NAME=VALUE")
        options[name] = value
    return options


def with_defaults(options: Mapping[str, str], **defaults: str) -> dict[str, str]:
    """Return options with *defaults* for those that are not there, in whatever case."""
    there = {name.lower() for name in options}
    return {
        **{name: value for name, value in defaults.items() if name.lower() not in there},
        **options,
    }
