"""Generated columns: what they are, and what becomes of rows whose images lack them."""

import pyarrow as pa
import pytest

from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.statement import effect_of
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.generated import (
    STORED,
    UNLOGGED,
    VIRTUAL,
    check_key,
    generated_kind,
    kind_of,
    logs_generated,
    with_generated,
)
from ibb.pipeline.tables.row_changes import GroupRun, Op, RowChanges
from ibb.pipeline.tables.shape import column_field
from ibb.protocol.gtid import Gtid

RUN = GroupRun(Gtid(0, 1, 1), 0, 1)


def changes(op, before, after):
    """Return one change with these cells."""
    return RowChanges(bytes([op]), (RUN,), *(pa.table({n: [v] for n, v in image.items()})
                                             for image in (before, after)))  # fmt: skip


def schema(kind):
    return pa.schema(
        [
            column_field("id", "bigint(20)"),
            column_field("n", "bigint(20)"),
            column_field("g", "int(11)", "", kind),
        ]
    )


@pytest.mark.parametrize(
    ("version", "logged"),
    [
        ("10.11.14-MariaDB-log", True),
        ("11.8.3-MariaDB", False),
        ("12.3.1-MariaDB", False),
        ("mine-10", False),
    ],
)
def test_servers_from_11_on_log_none(version, logged):
    assert logs_generated(version) is logged


@pytest.mark.parametrize(
    ("extra", "attribute", "kind"),
    [
        ("", "", b""),
        ("auto_increment", "AUTO_INCREMENT", b""),
        ("VIRTUAL GENERATED", "AS (n + 1)", VIRTUAL),
        ("VIRTUAL GENERATED", "GENERATED ALWAYS AS (n) VIRTUAL COMMENT 'x'", VIRTUAL),
        ("STORED GENERATED", "AS (n + 1) STORED", STORED),
        ("STORED GENERATED", "AS (n + 1) PERSISTENT UNIQUE", STORED),
    ],
)
def test_information_schema_and_definitions_say_the_same(extra, attribute, kind):
    effect = effect_of(f"CREATE TABLE t (n INT, c INT {attribute})", "shop")
    definition = effect.columns[1]
    assert (
        generated_kind(extra, logged=True)
        == generated_kind(definition.generated, logged=True)
        == kind
    )
    other = UNLOGGED if kind else b""
    assert (
        generated_kind(extra, logged=False)
        == generated_kind(definition.generated, logged=False)
        == other
    )
    assert kind_of(column_field("c", "int(11)", "", kind)) == kind


@pytest.mark.parametrize("found", [{}, {"g": 3}])
@pytest.mark.parametrize(
    ("op", "before", "after"),
    [
        (Op.INSERT, {}, {"id": 1, "n": 2}),
        (Op.UPDATE, {"id": 1}, {"n": 3}),
        (Op.UPDATE, {"id": 1, "n": 2}, {"id": 1, "n": 3}),
        (Op.DELETE, {"id": 1, "n": 2}, {}),
    ],
)
def test_what_is_never_logged_is_null_in_each_image(op, before, after, found):
    made = with_generated("t", schema(UNLOGGED), changes(op, before | found, after | found))
    for image, cells in ((made.before, before), (made.after, after)):
        whole = cells | {"g": None} if cells or found else {}
        assert image.to_pylist() == ([whole] if whole else [])
        assert not whole or image.schema.field("g").type == pa.int32()


@pytest.mark.parametrize(
    ("kind", "op", "before", "after", "stops"),
    [
        (VIRTUAL, Op.UPDATE, {"id": 1}, {"n": 3}, True),
        (VIRTUAL, Op.UPDATE, {"id": 1}, {"n": 3, "g": 4}, False),
        (VIRTUAL, Op.DELETE, {"id": 1}, {}, False),
        (VIRTUAL, Op.INSERT, {}, {"id": 1, "n": 2}, False),  # where a column lacks, it stops anyway
        (STORED, Op.UPDATE, {"id": 1}, {"n": 1}, True),  # by a server from 11 on
        (STORED, Op.UPDATE, {"id": 1}, {"n": 1, "g": 3}, False),
        (b"", Op.UPDATE, {"id": 1}, {"n": 3}, False),
    ],
)
def test_a_row_does_not_change_beside_a_generated_column_that_is_not_logged(
    kind, op, before, after, stops
):
    given = changes(op, before, after)
    if not stops:
        assert with_generated("t", schema(kind), given) is given
        return
    with pytest.raises(
        PipelineError, match=r"^t at 0-1-1: rows change, .* generated column g behind"
    ):
        with_generated("t", schema(kind), given)


def test_a_key_must_be_logged():
    with pytest.raises(UnclearError, match="the generated column g, which is not logged"):
        check_key(schema(UNLOGGED), ["id", "g"])
    check_key(schema(UNLOGGED), ["id", "n"])
    check_key(schema(STORED), ["g"])


def test_what_is_unsaid_of_some_groups_is_unsaid_of_each():
    two = RowChanges(
        bytes([Op.UPDATE] * 2),
        (RUN, RUN._replace(gtid=Gtid(0, 1, 2))),
        pa.table({"id": [1, 2]}),
        pa.table({"n": [3, 4]}),
        unsaid="why",
    )
    assert two.only(lambda gtid: gtid.seq == 2).unsaid == "why"
    assert [field.name for field in two.lacking(schema(b""))] == ["g"]
