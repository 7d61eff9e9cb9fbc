"""
Small files of text that an operator writes: settings, in TOML, and whatever else is bounded.

What such a file or the command line names becomes a `Config` here.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .config import Config, ConfigError, parse_size

if TYPE_CHECKING:
    from dataclasses import Field

CONFIG_FILE_BYTES_MAX: Final = 1 << 20
PASSWORD_FILE_BYTES_MAX: Final = 4096
_WANTED: Final[Mapping[type, str]] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes",
}  # fmt: skip


def read_config_file(path: str) -> dict[str, object]:
    """
    Read a TOML file of settings; the values are not judged yet.

    Raises:
        ConfigError: unreadable, not TOML, or open to others while it holds a password.
    """
    text = read_text_file(path, CONFIG_FILE_BYTES_MAX)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    if "upstream_password" in values and Path(path).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path} holds a password: make its mode 0600")
    return values


def read_text_file(path: str, bytes_max: int) -> str:
    """
    Return the text of a small file.

    Raises:
        ConfigError: unreadable, longer than *bytes_max*, or not UTF-8.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > bytes_max:
        raise ConfigError(f"{path} is longer than {bytes_max} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8") from error


def read_password_file(path: str) -> str:
    """
    Return the password in a file, without the end of its line.

    Raises:
        ConfigError: as `read_text_file`.
    """
    text = read_text_file(path, PASSWORD_FILE_BYTES_MAX)
    return text.removesuffix("\n").removesuffix("\r")


def config_from(values: Mapping[str, object]) -> Config:
    """
    Return the settings that *values* name, as strings or as TOML types, the rest by default.

    Raises:
        ConfigError: a name is unknown or a value is of the wrong type or outside its bounds.
    """
    known = {setting.name: setting for setting in fields(Config)}
    settings: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"unknown setting: {name}")
        settings[name] = convert(known[name], value)
    return Config(**settings)


def convert(setting: Field[Any], value: object) -> object:
    """
    Return *value* in the type of a setting.

    Raises:
        ConfigError: it is of another one, or no text that the system takes.
    """
    name, default = setting.name, setting.default
    if setting.metadata["unit"] == "bytes" and isinstance(value, str):
        return parse_size(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        shown = "" if name.endswith("password") else f", not {value!r}"
        raise ConfigError(f"{name} must be {_WANTED[type(default)]}{shown}")
    if isinstance(value, str) and "\0" in value:
        raise ConfigError(f"{name} must not hold a character NUL")
    return value
