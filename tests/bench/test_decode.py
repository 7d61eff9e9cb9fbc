"""The rows that are decoded are those that were made."""

from ibb.bench.data_set import Recipe
from ibb.bench.rows.decode import decoded, row_events
from ibb.pipeline.row_batches import RowBatches


def test_every_row_is_decoded():
    recipe = Recipe("bulk", 1 << 20)
    layout, events = row_events(recipe)
    rows, used = decoded(layout, events)
    assert rows == len(events) * (8192 // 107)
    assert used > 0


def test_rows_have_the_numbers_of_their_groups():
    layout, events = row_events(Recipe("one-row", 5_000))
    batches = RowBatches(layout)
    for event in events:
        batches.add(event)
    found = batches.take().to_batch().column("after").to_pylist()
    assert [row["id"] for row in found] == list(range(1, len(events) + 1))
    assert {row["note"] for row in found} == {"n" * 142}
