"""
Mutants of the storage layer: one promise broken in each, made from the syntax tree.

What is broken: a sync is left out, or comes a statement too early or too late; a checksum is not
compared; an LSN, or a place beside the durable end, is compared wrongly or not bounded; a pin or
another need of a file is not set, not taken away or not asked for; a lock is not taken, or not
given back.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SYNCS = ("sync", "_sync", "write_to", "fsync", "fdatasync")  # how the names of calls begin
PINS = {"pin", "unpin", "prepare", "unprepare"}
CHECKSUMS = {"crc", "crc32c", "page_checksum", "checksum_is_right", "sealed_page"}
LSNS = {"lsn", "synced_lsn", "end_lsn", "first_lsn", "last_lsn", "durable_lsn", "_written_lsn",
        "_announced_lsn", "sequence"}  # fmt: skip
NEIGHBOURS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
OPPOSITES = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
FROZEN = "frozen"  # a method that holds a lock for a block
NO_LOCK = '__import__("contextlib").nullcontext()'
TURNS = {"acquire", "release"}
NOBODY_S = '.replace("ibb.lock", __import__("uuid").uuid4().hex)'  # name of a lock file
LIMITS = {
    "live_pages.py": {"end"},
    "durable.py": {"end"},
    "backup.py": {"end"},
    "directory.py": {"limit"},
    "read_only.py": {"limit", "end"},
    "purge.py": {"file_no"},
}  # beside the LSNs


class Mutant(NamedTuple):
    """
    One change.

    Attributes:
        name: file, function and what is changed; the same for as long as the code is.
        path: of the module.
        source: the whole module, changed.
        place: file and function.
        lines: of the module as it is, from the first that is changed to the last.
        is_lock: a lock is not taken: only threads can notice.
    """

    name: str
    path: Path
    source: str
    place: str
    lines: range
    is_lock: bool


class Change(NamedTuple):
    """What is changed, the nodes from the first byte to the last, and the text in their place."""

    what: str
    first: ast.stmt | ast.expr
    last: ast.stmt | ast.expr
    text: str
    is_lock: bool = False


def make_mutants(folder: Path) -> Iterator[Mutant]:
    """Yield the mutants of all modules of a folder, and of those in folders below."""
    texts = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    locks = _locks(trees.values())
    for path, text in texts.items():
        seen: dict[str, int] = {}
        module = path.relative_to(folder).as_posix()
        for node, function in _nodes(trees[path]):
            changes = (*_changes(node, module), *_moves(node, text), *_unlocked(node, locks))
            for change in changes:
                place = f"{module} {function}"
                name = f"{place}: {change.what}"
                seen[name] = seen.get(name, 0) + 1
                if seen[name] > 1:
                    name = f"{name} ({seen[name]})"
                source, lines = _spliced(text, change), _lines(change)
                yield Mutant(name, path, source, place, lines, change.is_lock)


def _nodes(tree: ast.AST, function: str = "module") -> Iterator[tuple[ast.AST, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Assert):
            continue
        name = node.name if isinstance(node, ast.FunctionDef) else function
        yield node, name
        yield from _nodes(node, name)


def _changes(node: ast.AST, file: str) -> Iterator[Change]:
    """Yield what can be broken at a node."""
    limits = LSNS | LIMITS.get(file, set())
    if isinstance(node, ast.Expr):
        if _is_promise(node):
            yield Change(f"without {ast.unparse(node)}", node, node, "pass")
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _compared(node, limits)
    elif isinstance(node, ast.Call):
        called, arguments = ast.unparse(node.func), node.args
        if called in ("min", "max") and len(arguments) == 2 and _names(node) & limits:
            for argument in arguments:
                text = ast.unparse(argument)
                yield Change(f"always {text} in {ast.unparse(node)}", node, node, f"({text})")
        elif called == "disk.lock":
            text = f"{called}({ast.unparse(arguments[0])}{NOBODY_S})"
            yield Change(f"{ast.unparse(node)} of another file", node, node, text)


def _is_promise(node: ast.Expr) -> bool:
    """Tell whether a statement syncs, sets or takes away a pin, or hands a lock on."""
    if not isinstance(node.value, ast.Call):
        return False
    called, owner = _called(node), _owner(node)
    return (
        called.startswith(SYNCS)
        or (called in PINS and owner.endswith("pins"))
        or (called in ("append", "extend") and owner == "needs")
        or (called in TURNS and owner.endswith(("turn", "lock")))
    )


def _compared(node: ast.Compare, limits: set[str]) -> Iterator[Change]:
    names = _names(node)
    operator = type(node.ops[0])
    text = ast.unparse(node)
    if names & CHECKSUMS and operator in (ast.Eq, ast.NotEq):
        yield Change(f"checksum not looked at: {text}", node, node, str(operator is ast.Eq))
    elif names & limits:
        for table in (NEIGHBOURS, OPPOSITES):
            if operator in table:
                left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
                changed = f"({left} {table[operator]} {right})"
                yield Change(f"{table[operator]} in {text}", node, node, changed)


def _moves(node: ast.AST, text: str) -> Iterator[Change]:
    """Yield the syncs in a block that can change places with their neighbours."""
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(node, block, None)
        if not isinstance(statements, list):
            continue
        for first, second in itertools.pairwise(statements):
            early, late = (_called(part).startswith(SYNCS) for part in (second, first))
            other = first if early else second
            if not (early or late) or not _does_something(other):
                continue
            if early and _assigned(first) & _names(second):
                continue
            what = f"{ast.unparse(second if early else first)} moved {'up' if early else 'down'}"
            parts = [ast.get_source_segment(text, part) for part in (second, first)]
            indent = "\n" + " " * first.col_offset
            yield Change(what, first, second, indent.join(part or "" for part in parts))


def _does_something(node: ast.AST) -> bool:
    """Tell whether a statement calls something, and others behind it are still reached."""
    if isinstance(node, ast.Return | ast.Raise | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _unlocked(node: ast.AST, locks: set[str]) -> Iterator[Change]:
    """Yield the locks that a `with` takes."""
    if not isinstance(node, ast.With):
        return
    for item in node.items:
        taken = item.context_expr
        called = taken.func if isinstance(taken, ast.Call) else taken
        if isinstance(called, ast.Attribute) and called.attr in locks:
            yield Change(f"{ast.unparse(taken)} not taken", taken, taken, NO_LOCK, is_lock=True)


def _locks(trees: Iterable[ast.AST]) -> set[str]:
    """Return the names under which objects keep locks."""
    makers = ("threading.Lock()", "threading.RLock()")
    return {FROZEN} | {
        node.targets[0].attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and ast.unparse(node.value) in makers
    }


def _called(node: ast.AST) -> str:
    """Return what a statement calls if it does nothing else."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return ""
    called = node.value.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _owner(node: ast.Expr) -> str:
    assert isinstance(node.value, ast.Call)
    called = node.value.func
    return ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""


def _assigned(node: ast.AST) -> set[str]:
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _names(node: ast.AST) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _lines(change: Change) -> range:
    assert change.last.end_lineno is not None
    return range(change.first.lineno, change.last.end_lineno + 1)


def _spliced(text: str, change: Change) -> str:
    """Put other text in the place of nodes."""
    first, last = change.first, change.last
    assert last.end_lineno is not None
    assert last.end_col_offset is not None
    data = text.encode()
    lines = data.splitlines(keepends=True)
    start = sum(map(len, lines[: first.lineno - 1])) + first.col_offset
    end = sum(map(len, lines[: last.end_lineno - 1])) + last.end_col_offset
    return (data[:start] + change.text.encode() + data[end:]).decode()
