"""`ibb inspect`: headers, pages, chunks, records, trees and the redo log, for people."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple
from typing import TYPE_CHECKING

import click

from ibb.storage.belongings import check_holds_binlog
from ibb.storage.file_name import FILE_NO_MAX, binlog_name, parse_binlog_name
from ibb.storage.inspect.files import Inspector
from ibb.storage.inspect.record import inspect_record
from ibb.storage.inspect.redo import inspect_groups, inspect_segments
from ibb.storage.options import FILE_PAGES_MAX
from ibb.storage.os_disk import OsDisk
from ibb.storage.page import PAGE_SIZE_MAX
from ibb.storage.position import Position

from .table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.storage.inspect.files import FileLine
    from ibb.storage.inspect.record import RecordView

REDO = "redo"
_HEX_BYTES = 16  # a line
_FILE_TITLES = (
    "file", "bytes", "status", "page size", "major", "pages", "last used", "LSN", "interval",
    "oob from", "XA from", "state on page 1",
)  # fmt: skip


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.argument("place", required=False, metavar="[FILE[:PAGE[:OFFSET]] | redo]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def inspect(directory: str, place: str | None, *, as_json: bool) -> None:
    """
    Show the binlog in DIRECTORY as it is, damaged or not.

    Without a place: its files. FILE (a name or number): its header and pages. FILE:PAGE: the
    chunks of a page. FILE:PAGE:OFFSET: the record that begins at this byte of the page. redo: the
    redo log. The directory is only read, and may be in use: its redo log is then shown as far as
    it is synced.

    \b
      ibb inspect binlogs                 the files
      ibb inspect binlogs 0               binlog-000000.ibb, page by page
      ibb inspect binlogs 0:1             what lies on its page 1
      ibb inspect binlogs 0:1:5 --json    the record at byte 5 of it
      ibb inspect binlogs redo

    Exit status 0, damaged or not; 2: there is no such place.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    check_holds_binlog(OsDisk(), directory)
    show = _objects if as_json else _texts
    for line in show(directory, place):
        click.echo(line)


def _parse_place(place: str) -> tuple[int, int | None, int | None]:
    name, *numbers = place.split(":")
    file_no = _number(name, FILE_NO_MAX)
    if file_no is None:
        file_no = parse_binlog_name(name)
    found = [
        _number(number, highest)
        for number, highest in zip(numbers, (FILE_PAGES_MAX, PAGE_SIZE_MAX), strict=False)
    ]
    if file_no is None or len(numbers) > 2 or None in found:
        raise click.BadParameter(
            f"'{place}' is not FILE[:PAGE[:OFFSET]], nor '{REDO}'; pages are 0 to "
            f"{FILE_PAGES_MAX}, offsets 0 to {PAGE_SIZE_MAX}"
        )
    page_no, offset = (*found, None, None)[:2]
    return file_no, page_no, offset


def _number(text: str, highest: int) -> int | None:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(highest))):
        return None
    return number if (number := int(text)) <= highest else None


def _texts(directory: str, place: str | None) -> Iterator[str]:
    if place == REDO:
        yield from _redo_texts(directory)
        return
    inspector = Inspector(OsDisk(), directory)
    try:
        if place is None:
            yield from table(_FILE_TITLES, map(astuple, inspector.files()))
            return
        file_no, page_no, offset = _parse_place(place)
        if page_no is None:
            yield from _file_texts(inspector, file_no)
        elif page_no == 0:
            yield from _hex_lines(inspector.header_page(file_no))
        elif offset is None:
            status = inspector.page_status(file_no, page_no)
            yield f"{binlog_name(file_no)} page {page_no}: {status}"
            titles = ("offset", "type", "part", "bytes", "meaning")
            yield from table(titles, map(astuple, inspector.chunks(file_no, page_no)))
        else:
            position = Position(file_no, page_no * inspector.page_size(file_no) + offset)
            yield from _record_texts(inspect_record(inspector.pages, position))
    finally:
        inspector.close()


def _file_texts(inspector: Inspector, file_no: int) -> Iterator[str]:
    line = inspector.file(file_no)
    width = max(map(len, _FILE_TITLES))
    for title, value in zip(_FILE_TITLES, astuple(line), strict=True):
        yield f"{title:<{width}}  {'-' if value is None else value}"
    if line.page_size is None:
        return
    yield ""
    titles = (
        "page", "to", "offset", "status", "chunks", "used", "first record", "type", "state",
    )  # fmt: skip
    yield from table(titles, map(astuple, inspector.file_pages(file_no)))


def _record_texts(view: RecordView) -> Iterator[str]:
    yield f"{view.position}: {view.type or 'nothing'}, {view.size} bytes"
    if view.damage is not None:
        yield click.style(f"damaged: {view.damage}", fg="red")
    if view.meaning:
        yield view.meaning
    if len(view.chunks) > 1:
        yield f"chunks of {', '.join(map(str, view.chunks))} bytes"
    if view.events:
        yield ""
        titles = ("offset", "event", "bytes", "timestamp", "server", "flags")
        yield from table(titles, map(astuple, view.events))
    for number, tree in enumerate(view.trees, start=1):
        yield ""
        yield f"list {number}: {tree[0]}"
        yield from tree[1:]
    if view.hex:
        yield ""
        yield from _hex_lines(bytes.fromhex(view.hex))


def _hex_lines(data: bytes) -> Iterator[str]:
    for offset in range(0, len(data), _HEX_BYTES):
        part = data[offset : offset + _HEX_BYTES]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{offset:08x}  {part.hex(' '):<{3 * _HEX_BYTES - 1}}  {text}"


def _redo_texts(directory: str) -> Iterator[str]:
    disk = OsDisk()
    titles = ("segment", "bytes", "status", "sequence", "first LSN")
    yield from table(titles, map(astuple, inspect_segments(disk, directory)))
    yield ""
    for group in inspect_groups(disk, directory):
        if group.status != "ok":
            yield click.style(f"damaged: {group.status}", fg="red")
            continue
        yield f"group {group.lsn} to {group.end_lsn}, synced to {group.synced_lsn}"
        for change in group.changes:
            place = f"{change.file} page {change.page} offset {change.offset}"
            yield f"  {place}: {change.length} bytes"


def _objects(directory: str, place: str | None) -> Iterator[str]:
    """Yield the same as JSON; each object says what it is."""
    disk = OsDisk()
    if place == REDO:
        for segment in inspect_segments(disk, directory):
            yield json.dumps({"object": "segment", **asdict(segment)})
        for group in inspect_groups(disk, directory):
            yield json.dumps({"object": "group", **asdict(group)})
        return
    inspector = Inspector(disk, directory)
    try:
        if place is None:
            for file in inspector.files():
                yield _file_object(file)
            return
        file_no, page_no, offset = _parse_place(place)
        if page_no is None:
            file = inspector.file(file_no)
            yield _file_object(file)
            for page in inspector.file_pages(file_no) if file.page_size else ():
                yield json.dumps({"object": "page", **asdict(page)})
        elif page_no == 0:
            page0 = inspector.header_page(file_no)
            yield json.dumps({"object": "header", "hex": page0.hex()})
        elif offset is None:
            status = inspector.page_status(file_no, page_no)
            yield json.dumps({"object": "page", "page": page_no, "status": status})
            for chunk in inspector.chunks(file_no, page_no):
                yield json.dumps({"object": "chunk", **asdict(chunk)})
        else:
            position = Position(file_no, page_no * inspector.page_size(file_no) + offset)
            record = inspect_record(inspector.pages, position)
            yield json.dumps({"object": "record", **asdict(record)})
    finally:
        inspector.close()


def _file_object(file: FileLine) -> str:
    return json.dumps({"object": "file", **asdict(file)})
