"""The site builds strict, leads nowhere that is not there, and asks nobody else for anything."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
# What a browser fetches by itself, by tag and attribute; links that a person follows are no assets.
ASSETS = {
    **{(tag, "src"): True for tag in ("script", "img", "iframe", "source", "video", "audio")},
    ("link", "href"): True,
    ("object", "data"): True,
}
FETCHED_BY_STYLES = re.compile(r"url\(\s*['\"]?((?!data:)[^)'\"]+)|@import\s+['\"]([^'\"]+)")
BUILD_SECONDS_MAX = 120


class Links(HTMLParser):
    """The links, assets and anchors of one page."""

    def __init__(self):
        super().__init__()
        self.assets, self.links, self.anchors, self.classes = [], [], set(), set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if (tag, name) in ASSETS:
                self.assets.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)
            elif name == "id":
                self.anchors.add(value)
            elif name == "class":
                self.classes |= set((value or "").split())


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    found = {}
    for path in site.rglob("*.html"):
        links = Links()
        links.feed(path.read_text())
        found[path.relative_to(site)] = links
    return found


def test_each_page_of_the_documents_is_a_page_of_the_site(pages):
    names = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(names) > 15
    assert {str(name.with_suffix(".html")) for name in names} <= set(map(str, pages))


def test_nothing_comes_from_elsewhere(site, pages):
    for name, page in pages.items():
        assert [asset for asset in page.assets if urlsplit(asset).netloc] == [], name
        assert "mermaid" not in page.classes  # its program would be fetched from a public server
    for path in site.rglob("*.css"):
        for fetched in FETCHED_BY_STYLES.findall(path.read_text()):
            assert not urlsplit("".join(fetched)).netloc, path


def test_no_link_and_no_asset_is_dead(site, pages):
    dead = []
    for name, page in pages.items():
        if str(name) == "404.html":
            continue  # its links are absolute, for a server
        for link in [*page.links, *page.assets]:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            path = (
                (site / name.parent / unquote(target.path)).resolve()
                if target.path
                else site / name
            )
            there = path.relative_to(site.resolve()) if target.path else name
            if path.is_dir():
                path, there = path / "index.html", there / "index.html"
            anchor = unquote(target.fragment)
            if not path.exists() or (
                anchor and there in pages and anchor not in pages[there].anchors
            ):
                dead.append((str(name), link))
    assert dead == []


def test_links_elsewhere_are_told_by_their_text_and_encrypted(pages):
    others = {link for page in pages.values() for link in page.links if urlsplit(link).netloc}
    assert {urlsplit(link).scheme for link in others} <= {"https"}
