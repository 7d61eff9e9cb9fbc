"""Imports point downwards only: `docs/architecture.md`, "Layers"."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(path.relative_to(ROOT) for path in (ROOT / "ibb").rglob("*.py"))

MAY_IMPORT = {
    "protocol": {"protocol"},
    "storage": {"protocol", "storage"},
    "server": {"protocol", "storage", "server"},
    "pipeline": {"protocol", "storage", "pipeline"},
    "demo": {"protocol", "storage", "server", "demo"},
    "bench": {"protocol", "storage", "server", "pipeline", "demo", "bench"},
    "cli": {"protocol", "storage", "server", "pipeline", "demo", "bench", "cli"},
}

INPUT_OUTPUT = {
    *("os", "io", "pathlib", "shutil", "tempfile", "mmap", "fcntl", "socket", "ssl", "select"),
    *("selectors", "subprocess", "asyncio", "uvloop", "threading", "multiprocessing", "signal"),
    *("concurrent", "time", "datetime", "random", "secrets", "uuid", "logging", "structlog"),
}
LOOPS_AND_SOCKETS = {
    *("asyncio", "uvloop", "socket", "ssl", "select", "selectors", "subprocess", "signal"),
    *("random", "secrets", "uuid"),
}
DISK = {"os", "io", "shutil", "tempfile", "mmap", "fcntl"}

FORBIDDEN = {"protocol": INPUT_OUTPUT, "storage": LOOPS_AND_SOCKETS | DISK}
ALLOWED_IN = {
    Path("ibb/storage/os_disk.py"): DISK,  # only these reach the disk
    Path("ibb/storage/os_file.py"): DISK,
    Path("ibb/storage/os_read.py"): DISK,
    Path("ibb/storage/large_memory.py"): {"mmap"},  # of memory: it maps no file
    Path("ibb/storage/forks.py"): {"os"},  # it hears of forks, and touches no file
    Path("ibb/protocol/prepared_statement.py"): {"datetime"},  # SQL's moments, not the clock
}
SERVER_PARTS = (  # from below
    *("sql", "login", "connections", "statements", "dump", "relay"),
    *("dashboard", "web"),
)
SERVER_TOP = {  # above its parts
    *("listener", "server", "service", "session", "session_end", "session_host"),
}
LINKS = {"protocol", "storage", "server", "pipeline", "cli"}


def imports(path: Path) -> list[tuple[int, str]]:
    """Return (line, absolute name) of everything that the module at *path* imports."""
    package = path.with_suffix("").parts[:-1]
    found = []
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, node.module] if node.module else above)
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def broken_rules(path: Path) -> list[str]:
    """Return a line for each import of the module at *path* that points the wrong way."""
    layer = path.parts[1] if len(path.parts) > 2 else ""
    forbidden = FORBIDDEN.get(layer, set()) - ALLOWED_IN.get(path, set())
    broken = []
    for line, name in imports(path):
        words = name.split(".")
        if words[0] in LINKS:
            broken.append(f"{path}:{line}: {name}: say ibb.{name}, the bare name is another module")
        if words[0] in forbidden:
            broken.append(f"{path}:{line}: {layer} must not import {words[0]}")
        layers = set(words[1:2]) & MAY_IMPORT.keys() if words[0] == "ibb" and layer else set()
        if layers - MAY_IMPORT.get(layer, set()):
            broken.append(f"{path}:{line}: {layer} must not import ibb.{words[1]}")
    return broken


def test_there_are_modules_in_every_layer():
    assert {path.parts[1] for path in MODULES if len(path.parts) > 2} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_downwards(path):
    assert broken_rules(path) == []


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_are_relative_inside_a_folder_and_absolute_across(path):
    tree = ast.parse((ROOT / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{path}:{node.lineno}: relative import across folders"
            own = ".".join(path.parts[:-1]) if len(path.parts) > 2 else None
            absolute = node.level == 0 and node.module is not None
            assert not (own and absolute and f"{node.module}.".startswith(f"{own}.")), (
                f"{path}:{node.lineno}: inside a folder imports are relative"
            )


def names_for_types_only(tree):
    """Return the imports that a type checker alone follows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            yield from ast.walk(node)


@pytest.mark.parametrize("part", SERVER_PARTS)
def test_parts_of_the_server_use_those_below_them(part):
    above = {*SERVER_PARTS[SERVER_PARTS.index(part) + 1 :], *SERVER_TOP}
    paths = sorted((ROOT / "ibb" / "server" / part).glob("*.py"))
    assert len(paths) > 1
    for path in paths:
        tree = ast.parse(path.read_text())
        for_types = {id(node) for node in names_for_types_only(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in for_types:
                words = (node.module or "").split(".")
                is_own = words[:2] == ["ibb", "server"]
                assert not (is_own and above.intersection(words[2:3])), f"{path}:{node.lineno}"
