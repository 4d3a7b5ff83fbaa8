"""What the modes and options of a write do to a table."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    ConcurrentAppendException,
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    NotADeltaTableError,
    VersionNotFoundError,
)
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.transaction.write.tables import (
    actions,
    commit,
    data_files,
    info,
    rows,
    write,
)
from spark_tests.full_form import examples


def sales(*values: tuple[int | None, int | None, int]) -> pa.Table:
    columns = list(zip(*values, strict=True)) or [[], [], []]
    types = [("id", pa.int64()), ("p", pa.int32()), ("v", pa.int32())]
    return pa.table({name: pa.array(c, t) for (name, t), c in zip(types, columns, strict=True)})


FIVE = sales((1, 0, 10), (2, 0, 200), (3, 1, 10), (4, 1, 500), (5, 2, 60))


def ids(path: Path, version: int | None = None) -> list[int]:
    return sorted(row["id"] for row in rows(path, version))


def test_first_append_creates_the_table_with_the_least_protocol(tmp_path: Path) -> None:
    assert write(tmp_path, FIVE, partitionBy="p") == 0
    assert actions(tmp_path, 0, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    assert ids(tmp_path) == [1, 2, 3, 4, 5]
    assert info(tmp_path, 0)["operationParameters"] == {"mode": "Append", "partitionBy": '["p"]'}
    assert info(tmp_path, 0)["isBlindAppend"] is True


def test_rows_of_a_version_of_the_table_contradict_what_others_have_changed_since(tmp_path: Path) -> None:
    serializable = {"delta.isolationLevel": "Serializable"}
    write(tmp_path, FIVE, **serializable)
    assert write(tmp_path, sales((6, 1, 1)), readVersion="0") == 1
    assert info(tmp_path, 1)["isBlindAppend"] is False
    before = data_files(tmp_path)
    with pytest.raises(ConcurrentAppendException):
        write(tmp_path, sales((7, 1, 1)), readVersion="0")
    assert data_files(tmp_path) == before
    assert write(tmp_path, sales((7, 1, 1)), readVersion="1") == 2
    with pytest.raises(VersionNotFoundError):
        write(tmp_path, sales((8, 1, 1)), readVersion="9")
    with pytest.raises(NotADeltaTableError):
        write(tmp_path / "new", FIVE, readVersion="0")
    with pytest.raises(InvalidOptionError, match="readVersion"):
        write(tmp_path, FIVE, "overwrite", replaceUsing="id", readVersion="2")


def test_append_adds_rows_and_overwrite_replaces_them(tmp_path: Path) -> None:
    write(tmp_path, FIVE)
    assert write(tmp_path, sales((6, 1, 1))) == 1
    assert write(tmp_path, sales((7, 1, 1)), "overwrite") == 2
    assert (ids(tmp_path, 1), ids(tmp_path)) == ([1, 2, 3, 4, 5, 6], [7])
    assert info(tmp_path, 2)["operationMetrics"]["numRemovedFiles"] == "2"


def test_replace_where_means_the_time_at_which_the_write_was_planned(tmp_path: Path) -> None:
    """A row that was to come then and is past when the write ends is replaced, as the written rows are judged."""
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    start = datetime.datetime.now(datetime.timezone.utc)

    def row(id_: int, seconds: float) -> pa.RecordBatch:
        moment = start + datetime.timedelta(seconds=seconds)
        return pa.record_batch([pa.array([id_]), pa.array([moment], schema.field("ts").type)], schema=schema)

    def slowly() -> Iterator[pa.RecordBatch]:
        time.sleep(1.2)
        yield row(4, 3600)

    for id_, seconds in ((1, -1.0), (2, 1.0), (3, 3000.0)):
        write(tmp_path, pa.Table.from_batches([row(id_, seconds)]))
    late = pa.RecordBatchReader.from_batches(schema, slowly())
    DeltaLog(tmp_path).write(late, "overwrite", {"replaceWhere": "ts > current_timestamp()"})
    assert ids(tmp_path) == [1, 4]


def test_append_without_rows_makes_no_version(tmp_path: Path) -> None:
    write(tmp_path, FIVE)
    assert write(tmp_path, FIVE.slice(0, 0)) is None
    assert DeltaLog(tmp_path).snapshot().version == 0


def test_replace_where_on_partitions_removes_whole_files(tmp_path: Path) -> None:
    write(tmp_path, FIVE, partitionBy="p")
    write(tmp_path, sales((9, 0, 1)), "overwrite", replaceWhere="p = 0")
    assert ids(tmp_path) == [3, 4, 5, 9]
    assert len(actions(tmp_path, 1, "add")) == 1
    metrics = info(tmp_path, 1)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"], metrics["numOutputRows"]) == ("2", "0", "1")


def test_replace_where_on_data_keeps_the_other_rows_of_a_file(tmp_path: Path) -> None:
    write(tmp_path, FIVE, partitionBy="p")
    write(tmp_path, sales((9, 1, 77)), "overwrite", replaceWhere="v >= 50")
    assert ids(tmp_path) == [1, 3, 9]
    metrics = info(tmp_path, 1)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"], metrics["numOutputRows"]) == ("3", "2", "3")


def test_replace_where_keeps_rows_for_which_it_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, sales((1, None, 1), (2, 1, 1)))
    write(tmp_path, sales((3, 1, 1)), "overwrite", replaceWhere="p = 1")
    assert ids(tmp_path) == [1, 3]


def test_rows_outside_replace_where_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    write(tmp_path, FIVE, partitionBy="p")
    before = data_files(tmp_path)
    with pytest.raises(DeltaError, match="p = 0") as caught:
        write(tmp_path, sales((9, 1, 1)), "overwrite", replaceWhere="p = 0")
    assert caught.value.condition == "DELTA_REPLACE_WHERE_MISMATCH"
    assert (data_files(tmp_path), DeltaLog(tmp_path).snapshot().version) == (before, 0)


@pytest.mark.parametrize("row", [(1, 1, -5), (None, 1, 5)])
def test_rows_that_break_another_check_do_not_conform_to_replace_where_either(
    tmp_path: Path, row: tuple[int | None, int, int]
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False), ("p", pa.int32()), ("v", pa.int32())])
    checks = {"delta.constraints.positive": "v > 0"}
    TableBuilder(tmp_path).create(
        schema, properties=checks, writer_features=["checkConstraints", "invariants"]
    )
    with pytest.raises(InvariantViolationError, match=r"constraint 'p = 1' .*violated") as caught:
        write(tmp_path, sales(row), "overwrite", replaceWhere="p = 1")
    assert caught.value.condition == "DELTA_REPLACE_WHERE_MISMATCH"


def test_replace_where_records_inserts_and_deletes_for_the_change_feed(tmp_path: Path) -> None:
    write(tmp_path, FIVE, **{"partitionBy": "p", "delta.enableChangeDataFeed": "true"})
    write(tmp_path, sales((9, 1, 77)), "overwrite", replaceWhere="v >= 50")
    changes = DeltaLog(tmp_path).changes(1, 1).to_arrow().to_pylist()
    found = sorted((c["id"], c["_change_type"]) for c in changes)
    assert found == [(2, "delete"), (4, "delete"), (5, "delete"), (9, "insert")]


def test_overwrite_needs_no_change_files(tmp_path: Path) -> None:
    write(tmp_path, FIVE, **{"delta.enableChangeDataFeed": "true"})
    write(tmp_path, sales((9, 1, 77)), "overwrite")
    assert actions(tmp_path, 1, "cdc") == []
    kinds = sorted(c["_change_type"] for c in DeltaLog(tmp_path).changes(1, 1).to_arrow().to_pylist())
    assert kinds == ["delete"] * 5 + ["insert"]


def test_dynamic_overwrite_replaces_the_partitions_written_to(tmp_path: Path) -> None:
    write(tmp_path, sales((1, 0, 1), (2, 1, 1), (3, None, 1)), partitionBy="p")
    write(tmp_path, sales((8, None, 1), (9, 0, 1)), "overwrite", partitionOverwriteMode="dynamic")
    assert ids(tmp_path) == [2, 8, 9]


def test_dynamic_overwrite_of_an_unpartitioned_table_replaces_all(tmp_path: Path) -> None:
    write(tmp_path, FIVE)
    write(tmp_path, sales((9, 0, 1)), "overwrite", partitionOverwriteMode="dynamic")
    assert ids(tmp_path) == [9]


def test_application_transaction_is_written_once(tmp_path: Path) -> None:
    once = {"txnAppId": "app", "txnVersion": "1"}
    assert write(tmp_path, FIVE, **once) == 0
    assert write(tmp_path, FIVE, **once) is None
    assert write(tmp_path, FIVE, txnAppId="app", txnVersion="2") == 1
    assert DeltaLog(tmp_path).snapshot().txns == {"app": 2}
    assert len(ids(tmp_path)) == 10
    assert len(data_files(tmp_path)) == 2


def test_half_an_application_transaction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="txnVersion"):
        write(tmp_path, FIVE, txnAppId="app")


@pytest.mark.parametrize(
    ("level", "used"),
    [("Serializable", "SnapshotIsolation"), ("WriteSerializable", "WriteSerializable")],
)
def test_rearranged_rows_are_marked_in_every_action(tmp_path: Path, level: str, used: str) -> None:
    write(tmp_path, FIVE, **{"delta.isolationLevel": level})
    write(tmp_path, FIVE, "overwrite", dataChange="false")
    files = [*actions(tmp_path, 1, "add"), *actions(tmp_path, 1, "remove")]
    assert [f["dataChange"] for f in files] == [False, False]
    assert info(tmp_path, 1)["isolationLevel"] == used


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"dataChange": "false", "mergeSchema": "true"}, "DELTA_DATA_CHANGE_FALSE"),
        ({"delta.appendOnlly": "true"}, "DELTA_UNKNOWN_CONFIGURATION"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(
    tmp_path: Path, options: dict[str, str], condition: str
) -> None:
    write(tmp_path, FIVE)
    with pytest.raises(DeltaError) as caught:
        write(tmp_path, FIVE.append_column("new", pa.nulls(5, pa.int32())), **options)
    assert caught.value.condition == condition


def test_codec_is_in_the_name_and_the_file(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write(tmp_path, FIVE, compression="gzip")
    (add,) = actions(tmp_path, 0, "add")
    assert add["path"].endswith(".gz.parquet")
    assert pq.ParquetFile(tmp_path / add["path"]).metadata.row_group(0).column(0).compression == "GZIP"


def test_overwritten_schema_may_change_types_and_partitioning(tmp_path: Path) -> None:
    write(tmp_path, FIVE, partitionBy="p")
    other = pa.table({"id": pa.array(["a"]), "q": pa.array([1.5])})
    write(tmp_path, other, "overwrite", overwriteSchema="true", partitionBy="id")
    snapshot = DeltaLog(tmp_path).snapshot()
    assert (snapshot.schema.names, snapshot.partition_columns) == (["id", "q"], ["id"])
    assert rows(tmp_path) == [{"id": "a", "q": 1.5}]
    assert len(rows(tmp_path, 0)) == 5


def test_small_files_of_a_partition_are_joined_when_asked_to(tmp_path: Path) -> None:
    from delta_ds.kernel.transaction.write.finish import finish_write
    from delta_ds.kernel.transaction.write.task import write_rows

    plan = _plan(tmp_path, {"optimizeWrite": "true", "partitionBy": "p"})
    results = [write_rows(plan, FIVE.to_batches(), task) for task in range(4)]
    assert finish_write(plan, results) == 0
    assert len(rows(tmp_path)) == 20
    assert len(actions(tmp_path, 0, "add")) == len(data_files(tmp_path)) == 3


def test_row_ids_survive_a_replace_where(tmp_path: Path) -> None:
    write(tmp_path, FIVE, **{"delta.enableRowTracking": "true"})
    before = _row_ids(tmp_path)
    write(tmp_path, sales((9, 1, 77)), "overwrite", replaceWhere="v >= 50")
    after = _row_ids(tmp_path)
    assert {i: after[i] for i in (1, 3)} == {i: before[i] for i in (1, 3)}
    assert after[9] not in before.values()


def test_replace_where_keeps_no_row_ids_once_row_tracking_is_turned_off(tmp_path: Path) -> None:
    from delta_ds.kernel.transaction.alter.properties import set_properties

    write(tmp_path, FIVE, **{"delta.enableRowTracking": "true"})
    set_properties(DeltaLog(tmp_path), {"delta.enableRowTracking": "false"})
    version = write(tmp_path, sales((9, 1, 77)), "overwrite", replaceWhere="v >= 50")
    assert version is not None
    for add in actions(tmp_path, version, "add"):
        assert set(pq.read_schema(tmp_path / add["path"]).names) == {"id", "p", "v"}
        assert add["baseRowId"] is not None  # the feature is supported still


def _plan(path: Path, options: Mapping[str, str], data: pa.Table = FIVE, mode: str = "append") -> WritePlan:
    from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
    from delta_ds.kernel.transaction.write.intent import batch_intent, find_target
    from delta_ds.kernel.transaction.write.plan import plan_write

    target = find_target(batch_intent({**options, "path": str(path)}, mode))
    return plan_write(target, schema_from_arrow(data.schema))


def _row_ids(path: Path) -> dict[int, Any]:
    scan = DeltaLog(path).snapshot().scan(metadata_columns=("row_id", "row_commit_version"))
    return {row["id"]: tuple(row["_metadata"].values()) for row in scan.to_arrow().to_pylist()}


def test_commit_that_loses_deletes_its_files(tmp_path: Path) -> None:
    from delta_ds.exceptions import MetadataChangedException
    from delta_ds.kernel.transaction.alter.properties import set_properties
    from delta_ds.kernel.transaction.write.finish import finish_write
    from delta_ds.kernel.transaction.write.task import write_rows

    write(tmp_path, FIVE)
    before = data_files(tmp_path)
    plan = _plan(tmp_path, {})
    result = write_rows(plan, FIVE.to_batches())
    set_properties(DeltaLog(tmp_path), {"mine": "1"})
    with pytest.raises(MetadataChangedException):
        finish_write(plan, [result])
    assert data_files(tmp_path) == before


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "overwrite", "where", "dynamic"]),
            st.lists(st.tuples(st.sampled_from([None, 0, 1, 2]), st.integers(0, 9)), max_size=4),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_sequence_of_writes_equals_the_model(tmp_path_factory: Any, steps: list[Any]) -> None:
    path = tmp_path_factory.mktemp("t")
    model = [(0, 0, 0)]
    write(path, sales(*model), partitionBy="p")
    for number, (kind, values, bound) in enumerate(steps, 1):
        new = [(number * 10 + n, p, v) for n, (p, v) in enumerate(values)]
        if kind == "append":
            write(path, sales(*new))
        elif kind == "overwrite":
            model = []
            write(path, sales(*new), "overwrite")
        elif kind == "where":
            new = [row for row in new if row[2] >= bound]
            model = [row for row in model if not row[2] >= bound]
            write(path, sales(*new), "overwrite", replaceWhere=f"v >= {bound}")
        else:
            model = [row for row in model if row[1] not in {p for _, p, _ in new}]
            write(path, sales(*new), "overwrite", partitionOverwriteMode="dynamic")
        model = model + new
        assert [tuple(r.values()) for r in rows(path)] == [
            tuple(r.values()) for r in sorted(sales(*model).to_pylist(), key=repr)
        ]
    assert commit(path, 0)


def test_dynamic_overwrite_finds_files_from_before_a_partition_column_was_renamed(tmp_path: Path) -> None:
    from delta_ds.kernel.transaction.alter.columns import rename_column
    from delta_ds.kernel.transaction.alter.properties import set_properties

    write(tmp_path, sales((1, 0, 1), (2, 1, 1)), partitionBy="p")
    set_properties(DeltaLog(tmp_path), {"delta.columnMapping.mode": "name"})
    rename_column(DeltaLog(tmp_path), "p", "part")
    new = sales((3, 1, 1)).rename_columns(["id", "part", "v"])
    write(tmp_path, new, "overwrite", partitionOverwriteMode="dynamic")
    assert sorted((row["id"], row["part"]) for row in rows(tmp_path)) == [(1, 0), (3, 1)]


def test_files_are_closed_at_the_size_that_the_table_asks_for(tmp_path: Path) -> None:
    many = sales(*((n, 0, n) for n in range(200_000)))
    write(tmp_path, many, **{"delta.targetFileSize": "200kb", "compression": "none"})
    assert len(actions(tmp_path, 0, "add")) > 3


def test_replace_where_means_the_time_zone_that_the_tasks_know(tmp_path: Path) -> None:
    from datetime import datetime, timezone

    from delta_ds.kernel.transaction.write.finish import finish_write
    from delta_ds.kernel.transaction.write.task import write_rows

    moments = [datetime(2024, 1, 1, hour, tzinfo=timezone.utc) for hour in (0, 12)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})
    write(tmp_path, table)
    # Midnight in New York is five o'clock in UTC: the first row stays.
    planned = _plan(tmp_path, {"replaceWhere": "at >= '2024-01-01'"}, table, "overwrite")
    result = write_rows(planned.in_time_zone("America/New_York"), table.slice(1).to_batches())
    finish_write(planned, [result])
    assert [row["at"].hour for row in rows(tmp_path)] == [0, 12]
    assert info(tmp_path, 1)["operationMetrics"]["numDeletedRows"] == "1"
