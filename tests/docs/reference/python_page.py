"""docs/reference/python.md: what programs use, with the docstrings that the modules have."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from .markdown import NOTICE, fenced, prose

ROOT = Path(__file__).parents[3]
INTRODUCTION = """\
# Python

What a program that publishes or reads needs. Imports are from the modules named; all calls but
those of `Server` and `AsyncCommits` block, and may come from any thread.

```python
from ibb.protocol.gtid import Gtid
from ibb.storage import Store

with Store.open("published") as store, store.begin() as group:
    group.write(events)  # bytes of whole events, in any pieces
    group.commit(Gtid(0, 1, 42))  # durable when it returns
```
"""
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Part(NamedTuple):
    """
    Some names of a module.

    Attributes:
        shown: where programs import them from.
        path: of the module.
        names: of classes and functions; all that are public where there are none.
        members: of a class, where not all its methods are for programs.
    """

    shown: str
    path: str
    names: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


PARTS = (
    Part("ibb.storage", "ibb/storage/store.py", ("Store",)),
    Part("ibb.storage", "ibb/storage/options.py", ("StoreOptions",)),
    Part("ibb.storage.group_writer", "ibb/storage/group_writer.py", ("GroupWriter",)),
    Part("ibb.storage.group_reader", "ibb/storage/group_reader.py", ("StoredGroup",)),
    Part("ibb.storage.commit_position", "ibb/storage/commit_position.py"),
    Part("ibb.storage.read_only", "ibb/storage/read_only.py", ("ReadOnlyHistory",)),
    Part("ibb.storage.history", "ibb/storage/history.py", ("BinlogFileInfo",)),
    Part("ibb.storage.leases", "ibb/storage/leases.py", ("Leases", "Lease", "Renewal")),
    Part("ibb.storage.purge", "ibb/storage/purge.py", ("PurgeResult", "PurgeSettings")),
    Part("ibb.storage.backup", "ibb/storage/backup.py", ("Backup",)),
    Part("ibb.storage.xa", "ibb/storage/xa.py", ("PreparedXa",)),
    Part(
        "ibb.storage.verify",
        "ibb/storage/verify/directory_check.py",
        ("verify_directory", "Totals"),
    ),
    Part("ibb.storage.verify.finding", "ibb/storage/verify/finding.py", ("Finding", "Severity")),
    Part("ibb.storage.errors", "ibb/storage/errors.py"),
    Part("ibb.protocol.errors", "ibb/protocol/errors.py"),
    Part("ibb.protocol.gtid", "ibb/protocol/gtid.py"),
    Part("ibb.protocol.binlog_state", "ibb/protocol/binlog_state.py"),
    Part(
        "ibb.server.server",
        "ibb/server/server.py",
        ("Server",),
        ("__init__", "start", "stop", "address", "reload", "status"),
    ),
    Part("ibb.server.async_commits", "ibb/server/async_commits.py"),
    Part("ibb.server.config", "ibb/server/config.py", ("Config", "ConfigError")),
    Part("ibb.server.config_file", "ibb/server/config_file.py", ("config_from",)),
    Part(
        "ibb.server.login.accounts", "ibb/server/login/accounts.py", ("AccountBook", "make_account")
    ),
)


def python_page() -> str:
    """Return the page."""
    parts = [NOTICE, INTRODUCTION]
    shown = ""
    for part in PARTS:
        if part.shown != shown:
            parts.append(f"## {part.shown}\n")
        shown = part.shown
        for node in definitions(part):
            parts += _class(node, part) if isinstance(node, ast.ClassDef) else _function(node, "")
    return "\n".join(parts)


def definitions(part: Part) -> Iterator[ast.ClassDef | _Function]:
    """Yield the public classes and functions of a part, in its order."""
    body = ast.parse((ROOT / part.path).read_text()).body
    there = {
        node.name: node
        for node in body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for name in part.names or [name for name in there if not name.startswith("_")]:
        yield there[name]


def _class(node: ast.ClassDef, part: Part) -> Iterator[str]:
    yield f"### {node.name}\n"
    if fields := list(_fields(node)):
        yield fenced("\n".join(fields).replace("'", '"'), "python") + "\n"  # as ruff writes it
    yield _docstring(node)
    for member in node.body:
        if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        wanted = member.name in part.members if part.members else not member.name.startswith("_")
        if wanted and ast.get_docstring(member):
            yield from _function(member, f"{node.name}.")
        elif wanted and member.name == "__init__":
            yield fenced(_signature(member, f"{node.name}.").replace(".__init__", ""), "python")
            yield ""


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of dataclasses, named tuples and enumerations."""
    if not (node.decorator_list or node.bases):
        return
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and not _is_private(member.target):
            yield _without_text(member)
        elif isinstance(member, ast.Assign) and not _is_private(member.targets[0]):
            yield ast.unparse(member)


def _without_text(field: ast.AnnAssign) -> str:
    """Return a field; what a call makes of it, such as its help, is on the page of options."""
    value = None if isinstance(field.value, ast.Call) else field.value
    return ast.unparse(ast.AnnAssign(field.target, field.annotation, value, simple=1))


def _is_private(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id.startswith("_")


def _function(node: _Function, owner: str) -> Iterator[str]:
    yield f"#### {owner}{node.name}\n" if owner else f"### {node.name}\n"
    yield fenced(_signature(node, owner), "python") + "\n"
    yield _docstring(node)


def _signature(node: _Function, owner: str) -> str:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    returns = f" -> {ast.unparse(node.returns).strip(chr(39))}" if node.returns else ""
    if "property" in decorators:
        return f"{owner}{node.name}{returns.replace(' ->', ':', 1)}"
    arguments = node.args
    if owner and "staticmethod" not in decorators:
        arguments.args = arguments.args[1:]
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{owner}{node.name}({ast.unparse(arguments)}){returns}"


def _docstring(node: ast.ClassDef | _Function) -> str:
    return prose(ast.get_docstring(node) or "")
