"""The words of findings are stable, and documented."""

from pathlib import Path

from ibb.storage.verify.finding import Finding, Kind, Place, Severity

DOCUMENT = Path(__file__).parents[3] / "docs" / "verify.md"


def test_the_document_lists_every_kind():
    lines = DOCUMENT.read_text().splitlines()
    table = lines[lines.index("| kind | severity | meaning |") + 2 :]
    assert table == [f"| `{kind}` | {kind.severity} | {kind.meaning} |" for kind in Kind]


def test_words_are_lower_case_with_hyphens():
    assert all(kind.replace("-", "").isalpha() and kind == kind.lower() for kind in Kind)
    assert len(set(Kind)) == len(list(Kind))


def test_a_finding_names_its_place():
    place = Place(7, 3, 20, 512)
    assert str(place) == "binlog-000007.ibb:1556"
    finding = Finding.at(Kind.CHUNK_LENGTH, place, "text")
    assert (finding.file, finding.page, finding.offset) == ("binlog-000007.ibb", 3, 20)
    assert finding.severity is Severity.DAMAGE
    assert finding.lost == "nothing"
    assert Finding.in_page(Kind.ZERO_PAGE, 7, 3, "text").offset is None
    assert Finding.in_file(Kind.MISSING_FILE, 7, "text").page is None
