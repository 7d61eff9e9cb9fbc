"""docs/reference/options.md: every setting of the server, and of a store that a program opens."""

import re
from dataclasses import fields
from typing import Any

from ibb.server.automatic_purge import PURGE_VARIABLES
from ibb.server.config import Config, size_text
from ibb.server.reloading import RELOADED
from ibb.server.sql.system_variables import SYSTEM_VARIABLES
from ibb.server.statements.live_settings import SETTINGS
from ibb.storage import StoreOptions

from .markdown import NOTICE, code, table

INTRODUCTION = """\
# Options

One name everywhere: `--max-binlog-size 1G` for `ibb serve`, `max_binlog_size = "1G"` in the TOML
file of `--config`, `Config(max_binlog_size=1 << 30)` in Python. The command line counts before the
file. Sizes are bytes, or written as MariaDB writes them (`16K`, `1M`, `1G`, `1T`); switches are
`true` or `false` in the file.

```toml
listen = "0.0.0.0:3307"
accounts = "/etc/ibb/accounts.toml"
max_binlog_total_size = "1T"
require_tls = true
```

`SHOW VARIABLES` tells the settings that have an SQL variable; where it says *SET*, `SET GLOBAL`
changes it in a running server ([SQL](sql.md)). SIGHUP takes those with *yes* from the file; a
change of the others waits for a restart ([Reloading](../operations.md#reloading)).

## ibb serve
"""
STORE = """\
## Stores of Python programs

`Store.open(directory, StoreOptions(...))` from `ibb.storage`: the settings of `ibb serve` that
concern files have the same names. Sizes are bytes.
"""


def options_page() -> str:
    """Return the page."""
    head = ("setting", "default", "meaning", "SQL", "SIGHUP")
    return "\n".join(
        [
            NOTICE,
            INTRODUCTION,
            table(head, map(_setting, fields(Config))),
            STORE,
            table(("option", "default", "meaning"), map(_store_option, fields(StoreOptions))),
        ]
    )


def _setting(setting: Any) -> tuple[str, str, str, str, str]:
    text = setting.metadata["help"]
    if setting.metadata.get("choices"):
        text += " One of " + ", ".join(map(code, setting.metadata["choices"])) + "."
    if setting.metadata.get("file_only"):
        text += " In the file alone, of mode 0600."
    taken = "*yes*" if setting.name in RELOADED else ""
    return code(setting.name), _default(setting), text, _sql(setting.name), taken


def _default(setting: Any) -> str:
    default = setting.default
    if isinstance(default, bool):
        return "on" if default else "off"
    if default == "":
        return "none"
    if setting.metadata["unit"] == "bytes":
        return code(size_text(default))
    return code(default)


def _sql(name: str) -> str:
    variables = {setting: variable for variable, setting in SETTINGS.items()}
    variables |= {name: name for name in PURGE_VARIABLES}
    if name in variables:
        return f"*SET* {code(variables[name])}" if variables[name] != name else "*SET*"
    return "shown" if name in SYSTEM_VARIABLES else ""


def _store_option(option: Any) -> tuple[str, str, str]:
    default = option.default
    is_size = isinstance(default, int) and not isinstance(default, bool) and default >= 1 << 10
    return (
        code(option.name),
        code(size_text(default) if is_size else default),
        store_meanings()[option.name],
    )


def store_meanings() -> dict[str, str]:
    """Return what the docstring of StoreOptions says of each."""
    arguments = (StoreOptions.__doc__ or "").partition("Args:")[2].partition("Raises:")[0]
    found = re.findall(r"^ +(\w+): (.*(?:\n {12,}.*)*)", arguments, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}
