"""What docs/comparison.md says of other programs has its source beside it."""

import re

from .covered_pages import ROOT

PAGE = (ROOT / "docs/comparison.md").read_text()
SOURCES = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", PAGE, re.MULTILINE))
LINK = re.compile(r"\[[^\]]+\]\[([\w-]+)\]")
OURS = 2  # cells of a row: what is compared, and `ibb`
WITHOUT_CLAIM = re.compile(r"does not (?:apply|serve readers)$")
SECTIONS = (
    "MaxScale's binlogrouter",
    "mariadb-binlog as an archiver",
    "Debezium",
    "An intermediate MariaDB",
)


def test_each_cell_about_another_program_has_its_source():
    _, *rows = (line.split(" | ") for line in re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE))
    assert {len(row) for row in rows} == {OURS + len(SECTIONS)}
    bare = [cell for row in rows for cell in row[OURS:] if not LINK.search(cell)]
    assert [cell for cell in bare if not WITHOUT_CLAIM.match(cell)] == []


def test_each_paragraph_about_another_program_has_a_source_or_is_advice():
    for title in SECTIONS:
        section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0].strip()
        for paragraph in section.split("\n\n"):
            assert LINK.search(paragraph) or paragraph.startswith("Take it where"), paragraph


def test_sources_are_pages_that_anybody_can_read_and_none_is_left_over():
    assert set(LINK.findall(PAGE)) == SOURCES.keys()
    assert list(SOURCES) == sorted(SOURCES)
    assert all(url.startswith("https://") for url in SOURCES.values())
    # What was read in a tree of sources is named as it was on that day.
    sources = [url for url in SOURCES.values() if "/blob/" in url]
    assert all(re.search(r"/blob/[0-9a-f]{40}/", url) for url in sources)
