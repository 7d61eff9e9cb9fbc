"""Files that lost their end: only the redo log knows how far they went."""

from dataclasses import replace

from ibb.storage import Store

from .verify_rig import SIZE, SMALL, findings, publish


def test_files_that_lost_their_end(tmp_path):
    """A closed store's redo log says how far the files were durable."""
    for numbers in (range(1, 20), range(20, 22)):
        with Store.open(tmp_path, SMALL) as store:
            for number in numbers:
                publish(store, number, 200)
    Store.open(tmp_path, replace(SMALL, format_description="upstream")).close()  # writes nothing
    newest = max(file for file in tmp_path.glob("*.ibb") if any(file.read_bytes()))
    image = bytearray(newest.read_bytes())
    used = max(page for page in range(16) if any(image[page * SIZE : (page + 1) * SIZE]))
    image[used * SIZE : (used + 1) * SIZE] = bytes(SIZE)
    newest.write_bytes(image)
    found = findings(tmp_path)
    assert [(str(each.kind), each.file) for each in found] == [("files-cut", newest.name)]
    assert found[0].lost == "0-1-20 at least"
