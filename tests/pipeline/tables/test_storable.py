"""Types that Delta has not."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.storable import storable, storable_schema

MOMENT = dt.datetime.fromisoformat("2020-01-01")


@pytest.mark.parametrize(
    ("kind", "value", "stored_kind", "stored"),
    [
        (pa.uint64(), 2**64 - 1, pa.decimal128(20, 0), Decimal(2**64 - 1)),
        (pa.uint32(), 2**32 - 1, pa.int64(), 2**32 - 1),
        (pa.uint8(), 255, pa.int16(), 255),
        (pa.decimal256(65, 30), Decimal("1.5"), pa.string(), "1.500000000000000000000000000000"),
        (pa.decimal256(38, 2), Decimal("-1.50"), pa.decimal128(38, 2), Decimal("-1.50")),
        (pa.time64("us"), dt.time(0, 0, 1), pa.int64(), 1_000_000),
        (pa.duration("us"), -dt.timedelta(hours=838), pa.int64(), -838 * 3600 * 10**6),
        (pa.dictionary(pa.int8(), pa.string()), "x", pa.string(), "x"),
        (pa.timestamp("s"), MOMENT, pa.timestamp("us"), MOMENT),
        (pa.binary(2), b"ab", pa.binary(), b"ab"),
        (pa.large_string(), "x", pa.string(), "x"),
        (pa.bool_(), True, pa.bool_(), True),
    ],
)
def test_values_stay_exact(kind, value, stored_kind, stored):
    rows = storable(pa.table({"c": pa.array([value, None], kind)}))
    assert rows.schema == storable_schema(pa.schema([("c", kind)]))
    assert rows.schema.field("c").type == stored_kind
    assert rows.column("c").to_pylist() == [stored, None]


@pytest.mark.parametrize("names", [["a", "A"], ["_ibb_key"], ["_IBB_x"]])
def test_names_that_a_table_cannot_have(names):
    with pytest.raises(PipelineError, match="column"):
        storable_schema(pa.schema([(name, pa.int8()) for name in names]))
