"""
Lets the site link what the pages name as readers of the repository find it: `docs/accounts.md`.

mkdocs calls `on_page_markdown` for each page (`hooks` in mkdocs.yml).
"""
# ruff: noqa: INP001 - mkdocs loads it by its path

import posixpath
import re
from pathlib import Path
from typing import Any

PAGE_NAME = re.compile(r"(?<!\[)`docs/([a-z0-9/_-]+\.md)`")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
FOLDER = Path(__file__).parent


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return *markdown* with a link in place of each name of a page; dead ones fail the build."""
    folder = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        return f"[{_title(found[1])}]({posixpath.relpath(found[1], folder or '.')})"

    return PAGE_NAME.sub(link, markdown)


def _title(name: str) -> str:
    """Return the title of a page, its name if it has none."""
    path = FOLDER / name
    found = TITLE.search(path.read_text()) if path.exists() else None
    return found[1] if found else name
