"""Docstrings and tables as Markdown."""

import re
from collections.abc import Iterable, Sequence

NOTICE = "<!-- Made by scripts/reference from the code: change that, then run it again. -->"
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$")
_ENTRY = re.compile(r"^(?:\s{4})?([\w*, .]+): (.*)$")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a line in a cell stays one line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    """Return *text* in a code span."""
    return f"`{text}`"


def prose(docstring: str) -> str:
    """Return a docstring in Google's style: its text, and its sections as lists."""
    blocks: list[str] = []
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        first, _, rest = paragraph.partition("\n")
        if _SECTION.match(first.strip()) and rest:
            blocks.append(f"*{first.strip()}*\n\n" + "\n".join(_entries(rest)))
        elif paragraph.startswith("    "):
            blocks.append(fenced(paragraph))
        else:
            blocks.append(_indented_parts(paragraph))
    return "\n\n".join(blocks) + "\n"


def fenced(text: str, language: str = "text") -> str:
    """Return *text* as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def _indented_parts(paragraph: str) -> str:
    """Return a paragraph; indented lines at its end are a block of code."""
    lines = paragraph.splitlines()
    plain = [line for line in lines if not line.startswith("    ")]
    if len(plain) == len(lines):
        return paragraph
    shown = [line[4:] for line in lines[len(plain) :]]
    return "\n".join(plain) + "\n\n" + fenced("\n".join(shown))


def _entries(text: str) -> list[str]:
    """Return the entries of a section as items of a list, continued lines joined."""
    found: list[str] = []
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry and not line.startswith("        "):
            found.append(f"- `{entry[1].strip()}`: {entry[2]}")
        elif found:
            found[-1] += f" {line.strip()}"
        else:
            found.append(f"- {line.strip()}")
    return found
