"""
Mutants of the storage layer: one promise broken in each, made from the syntax tree.

What is broken: a sync is left out; a checksum is not compared; an LSN, or a place beside the
durable end, is compared wrongly; a pin is not set or not taken away.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SYNCS = {"sync", "sync_dir", "sync_to", "sync_all", "write_to", "_sync_segment"}
PINS = {"pin", "unpin", "prepare", "unprepare"}
CHECKSUMS = {"crc", "crc32c", "page_checksum", "checksum_is_right", "sealed_page"}
LSNS = {"lsn", "synced_lsn", "end_lsn", "first_lsn", "last_lsn", "durable_lsn", "_written_lsn",
        "_announced_lsn", "sequence"}  # fmt: skip
NEIGHBOURS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
OPPOSITES = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
LOCKS = {"_mutex", "_turn", "writing", "_making", "_working", "_syncing"}
READERS_LIMIT = ("live_pages.py", "durable.py")


class Mutant(NamedTuple):
    """
    One change.

    Attributes:
        name: file, function and what is changed; the same for as long as the code is.
        path: of the module.
        source: the whole module, changed.
    """

    name: str
    path: Path
    source: str


def make_mutants(folder: Path) -> Iterator[Mutant]:
    """Yield the mutants of all modules of a folder."""
    for path in _modules(folder):
        text = path.read_text()
        seen: dict[str, int] = {}
        for node, function in _nodes(ast.parse(text)):
            for what, replacement in _changes(node, path.name):
                name = f"{path.name} {function}: {what}"
                seen[name] = seen.get(name, 0) + 1
                if seen[name] > 1:
                    name = f"{name} ({seen[name]})"
                yield Mutant(name, path, _spliced(text, node, replacement))


def locks_in(folder: Path) -> list[str]:
    """Return where locks are taken: leaving one out shows only with several threads."""
    return [
        f"{path.name} {function}: {ast.unparse(item.context_expr)}"
        for path in _modules(folder)
        for node, function in _nodes(ast.parse(path.read_text()))
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Attribute) and item.context_expr.attr in LOCKS
    ]


def _modules(folder: Path) -> list[Path]:
    """Return the modules of stores; what only looks at directories is in folders below."""
    return sorted(folder.glob("*.py"))


def _nodes(tree: ast.AST, function: str = "module") -> Iterator[tuple[ast.AST, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Assert):
            continue
        name = node.name if isinstance(node, ast.FunctionDef) else function
        yield node, name
        yield from _nodes(node, name)


def _changes(node: ast.AST, file: str) -> Iterator[tuple[str, str]]:
    """Yield what can be broken at a node, and the text in its place."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
        if name in SYNCS or (name in PINS and owner.endswith("pins")):
            yield f"without {ast.unparse(node)}", "pass"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        names = _names(node)
        operator = type(node.ops[0])
        text = ast.unparse(node)
        if names & CHECKSUMS and operator in (ast.Eq, ast.NotEq):
            yield f"checksum not looked at: {text}", str(operator is ast.Eq)
        elif names & LSNS or (file in READERS_LIMIT and "end" in names):
            for table in (NEIGHBOURS, OPPOSITES):
                if operator in table:
                    left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
                    yield (
                        f"{table[operator]} in {text}",
                        f"({left} {table[operator]} {right})",
                    )


def _names(node: ast.AST) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _spliced(text: str, node: ast.AST, replacement: str) -> str:
    """Put other text in the place of a node."""
    assert isinstance(node, ast.stmt | ast.expr)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    data = text.encode()
    return (data[:start] + replacement.encode() + data[end:]).decode()
