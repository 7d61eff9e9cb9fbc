"""Rules of the house that no linter holds."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from .docs.covered_pages import (
    ELSEWHERE,
    IN_CONTAINERS,
    NOT_RUN,
    RUN,
    commands_not_run,
    pages_with_commands,
)
from .docs.reference.pages import stale

ROOT = Path(__file__).parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
SCRIPT_LINES_MAX = 35

SOURCES = sorted(
    path.relative_to(ROOT) for top in ("ibb", "tests") for path in (ROOT / top).rglob("*.py")
)
SCRIPTS = sorted(path.relative_to(ROOT) for path in (ROOT / "scripts").iterdir() if path.is_file())
LOCK_FILES = ("requirements.lock", "requirements-test.lock")
IMAGE_LOCK_FILES = ("containers/ibb/requirements.lock", "containers/ibb/build.lock")
CONTAINER_LOCK_FILES = (*IMAGE_LOCK_FILES, "containers/podman-compose.lock")
CHANGES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")  # keepachangelog.com
LEFT_OVER = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b")


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_a_file_holds_one_concept(path):
    assert len((ROOT / path).read_text().splitlines()) <= FILE_LINES_MAX


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_a_function_fits_a_screen(path):
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{path}:{node.lineno}: {node.name}"


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name != "test_tidy.py"], ids=str)
def test_nothing_is_left_for_later(path):
    assert LEFT_OVER.findall((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_scripts_are_short_and_executable(path):
    assert len((ROOT / path).read_text().splitlines()) <= SCRIPT_LINES_MAX
    assert (ROOT / path).stat().st_mode & 0o111
    subprocess.run(["bash", "-n", ROOT / path], check=True)


@pytest.mark.parametrize("name", ["protocol", "storage", "server"])
def test_the_short_paths_lead_into_the_package(name):
    link = ROOT / name
    assert link.is_symlink()
    assert link.readlink() == Path("ibb") / name


@pytest.mark.parametrize("name", [*LOCK_FILES, *CONTAINER_LOCK_FILES])
def test_a_lock_file_names_no_place_and_hashes_everything(name):
    lines = (ROOT / name).read_text().splitlines()
    assert not [line for line in lines if "://" in line]
    pinned = [number for number, line in enumerate(lines) if "==" in line]
    assert pinned
    assert all("--hash=sha256:" in lines[number + 1] for number in pinned)


def test_nothing_that_a_lock_file_lacks_is_looked_for():
    """pip prefers a newer release of what another package wants with extras: it has no hash."""
    files = [ROOT / "Dockerfile", *(ROOT / script for script in SCRIPTS)]
    lines = [line for path in files for line in path.read_text().splitlines() if "-hashes" in line]
    assert len(lines) == len(LOCK_FILES) + len(CONTAINER_LOCK_FILES)
    assert all("--require-hashes --no-deps" in line for line in lines)


def test_nothing_that_a_lock_file_lacks_builds_the_image():
    """What pip builds in isolation, it builds by the newest release that fits, without a hash."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    building = re.findall(r"pip install .*?(?:&&|$)", text, re.MULTILINE)
    assert len(building) == 3
    assert "/build.lock" in building[0]
    assert all("--no-build-isolation" in line for line in building[1:])
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pinned = (ROOT / IMAGE_LOCK_FILES[1]).read_text()
    assert [name for name in needed if f"{re.match('[a-z]+', name)[0]}==" not in pinned] == []


def test_tests_run_with_the_versions_that_the_demonstration_has():
    small, large = ((ROOT / name).read_text().splitlines() for name in LOCK_FILES)
    assert set(small) < set(large)


def test_the_image_has_the_versions_that_tests_run_with():
    image, tested = (
        set(re.findall(r"^[\w.-]+==[\w.]+", text, re.MULTILINE))
        for text in (
            "".join((ROOT / name).read_text() for name in IMAGE_LOCK_FILES),
            (ROOT / LOCK_FILES[1]).read_text(),
        )
    )
    assert image - tested == set()


def test_the_readme_lists_every_document():
    more = (ROOT / "README.md").read_text().partition("## More")[2]
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"`docs/{path.name}`" in more


def test_the_changelog_has_the_sections_that_readers_know():
    headings = re.findall(r"^(##+) (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == ("##", "Unreleased")
    sections = [name for level, name in headings if level == "###"]
    releases = sum(level == "##" for level, _ in headings)
    assert set(sections) <= set(CHANGES)
    assert all(sections.count(name) <= releases for name in CHANGES)


def test_the_site_leads_to_every_document():
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    shown = re.findall(r"[\w/-]+\.md", str(navigation))
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(shown) == sorted(there)


def test_the_reference_is_as_the_code_is():
    assert stale().keys() == set(), "run scripts/reference"


def test_every_page_with_commands_is_run_by_a_test_or_has_a_reason():
    covered = [*RUN, *IN_CONTAINERS, *ELSEWHERE]
    assert sorted(covered) == sorted(pages_with_commands()), "see tests/docs/covered_pages.py"


@pytest.mark.parametrize("page", [*RUN, *IN_CONTAINERS])
def test_every_command_of_these_pages_is_run_or_has_a_reason(page):
    shown, reasons = commands_not_run(page), NOT_RUN.get(page, {})
    without = [line for line in shown if not line.startswith(tuple(reasons))]
    assert without == [], "run it in a console block, or see tests/docs/covered_pages.py"
    assert [start for start in reasons if not any(line.startswith(start) for line in shown)] == []


def test_nobody_is_told_to_install_another_project():
    """The name `ibb` on PyPI belongs to somebody else: it is installed from a checkout."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *map(ROOT.joinpath, SOURCES)]
    wrong = re.compile(r"pip3? install (?:-\S+ )*['\"]?ibb\b")
    assert [path for path in texts if wrong.search(path.read_text())] == []
