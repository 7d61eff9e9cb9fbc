"""
The pages of docs/reference, made from the code.

    scripts/reference        writes those that are not as the code is
"""

from collections.abc import Callable
from pathlib import Path

from .cli_page import cli_page
from .metrics_page import metrics_page
from .options_page import options_page
from .python_page import python_page
from .sql_page import sql_page

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "options.md": options_page,
    "sql.md": sql_page,
    "metrics.md": metrics_page,
    "python.md": python_page,
}


def stale() -> dict[str, str]:
    """Return what should be in the pages that are not as the code is, by name."""
    wanted = {name: make() for name, make in PAGES.items()}
    return {name: text for name, text in wanted.items() if _text(FOLDER / name) != text}


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main() -> None:
    """Write what is stale, and say so."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in stale().items():
        (FOLDER / name).write_text(text)
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
