"""Small files of text that an operator writes: settings, in TOML, and whatever else is bounded."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import Final

from .config import ConfigError

CONFIG_FILE_BYTES_MAX: Final = 1 << 20


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
