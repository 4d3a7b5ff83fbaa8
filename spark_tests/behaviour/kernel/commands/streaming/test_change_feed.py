from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import ChangeDataError, InvalidOptionError, SchemaError
from delta_ds.kernel.commands.streaming.offsets import ReadLimits
from delta_ds.testing import TableBuilder, commit_time, remove_action
from spark_tests.behaviour.kernel.commands.streaming.streams import (
    IDS,
    end_of,
    new_metadata,
    open_source,
    read,
    rows,
    table,
)

FEED = {"delta.enableChangeDataFeed": "true"}


def feed(path: Path, **how: Any) -> TableBuilder:
    return table(path, properties=FEED, **how)


def changes(path: Path, limits: ReadLimits | None = None, **options: Any) -> list[list[tuple[int, str, int]]]:
    source = open_source(path, readChangeFeed="true", **options)
    at, found = source.initial_offset(), []
    while (end := source.latest_offset(at, limits)) != at:
        batch = read(source, at, end)
        found.append([(r["id"], r["_change_type"], r["_commit_version"]) for r in batch])
        at = end
    return [batch for batch in found if batch]


def test_the_snapshot_comes_as_inserts_of_its_version_and_then_the_changes(tmp_path: Path) -> None:
    builder = feed(tmp_path)
    builder.append(rows(1, 2))
    add = builder.state()[-1]
    source = open_source(tmp_path, readChangeFeed="true")
    start = source.initial_offset()
    first = source.latest_offset(start)
    moment = datetime.fromtimestamp(commit_time(1) / 1000, timezone.utc)
    expected = {"_change_type": "insert", "_commit_version": 1, "_commit_timestamp": moment}
    assert read(source, start, first) == [{"id": n, **expected} for n in (1, 2)]
    assert source.schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    builder.commit(remove_action(add), operation="DELETE")
    second = source.latest_offset(first)
    assert [(r["id"], r["_change_type"]) for r in read(source, first, second)] == [
        (1, "delete"),
        (2, "delete"),
    ]


def test_change_files_of_a_commit_are_never_split(tmp_path: Path) -> None:
    builder = feed(tmp_path)
    builder.append(rows(1))
    add = builder.state()[-1]
    cdc = []
    for kind, number in (("update_preimage", 1), ("update_postimage", 10), ("insert", 11)):
        data = rows(number).append_column("_change_type", pa.array([kind]))
        file = builder.write_file(data, path=f"_change_data/{kind}.parquet")["add"]
        cdc.append({"cdc": {k: file[k] for k in ("path", "partitionValues", "size")} | {"dataChange": False}})
    builder.commit(remove_action(add), builder.write_file(rows(10, 11)), *cdc, operation="MERGE")
    builder.append(rows(12))
    update = [(1, "update_preimage", 2), (10, "update_postimage", 2), (11, "insert", 2)]
    found = changes(tmp_path, ReadLimits(max_files=1), startingVersion=1)
    assert found == [[(1, "insert", 1)], update, [(12, "insert", 3)]]


def test_netted_changes_of_a_commit_come_in_one_batch_where_rows_come_and_go(tmp_path: Path) -> None:
    builder = feed(tmp_path)
    builder.commit(*(builder.write_file(rows(n)) for n in range(3)))
    adds = builder.state()[-3:]
    builder.commit(
        *(builder.write_file(rows(n)) for n in (0, 1, 9)), *map(remove_action, adds), operation="WRITE"
    )
    builder.commit(*map(remove_action, builder.state()[-3:]), operation="DELETE")
    limits, netted = ReadLimits(max_files=2), {"net": "net", "keys": "ID", "startingVersion": 1}
    single = [len(batch) for batch in changes(tmp_path, limits, startingVersion=1)]
    assert single == [2, 2, 2, 2, 2, 2]
    together = [{version for *_, version in batch} for batch in changes(tmp_path, limits, **netted)]
    assert together == [{1}, {1}, {2}, {3}, {3}]
    # A checkpoint of a stream that was not netted, in the middle of a version: the rest of it comes.
    plain = open_source(tmp_path, readChangeFeed="true", startingVersion=2)
    begun = plain.latest_offset(plain.initial_offset(), limits)
    resumed = open_source(tmp_path, readChangeFeed="true", **netted)
    rest = read(resumed, begun, resumed.latest_offset(resumed.offset(begun.to_json()), limits))
    assert len(rest) == 4 and {row["_commit_version"] for row in rest} == {2}
    assert resumed.netted() == (("id",), "net") and plain.netted() is None


def test_keys_of_a_netted_stream_are_checked_when_it_is_opened(tmp_path: Path) -> None:
    feed(tmp_path)
    with pytest.raises(SchemaError, match="'ids', which is no column; did you mean 'id'"):
        open_source(tmp_path, readChangeFeed="true", net="net", keys="ids")
    with pytest.raises(InvalidOptionError, match="needs readChangeFeed=true"):
        open_source(tmp_path, net="net", keys="id")
    with pytest.raises(InvalidOptionError, match="needs 'keys'"):
        open_source(tmp_path, readChangeFeed="true", net="latest")
    with pytest.raises(InvalidOptionError, match="it is net .* or latest"):
        open_source(tmp_path, readChangeFeed="true", net="last", keys="id")


def test_a_new_deletion_vector_is_a_delete_of_its_rows(tmp_path: Path) -> None:
    builder = feed(tmp_path, reader_features=["deletionVectors"], writer_features=["changeDataFeed"])
    add = builder.write_file(rows(1, 2, 3))
    builder.commit(add)
    builder.delete_rows(add, [0, 2])
    found = changes(tmp_path, ReadLimits(max_files=1), startingVersion=1)
    assert found == [[(n, "insert", 1) for n in (1, 2, 3)], [(1, "delete", 2), (3, "delete", 2)]]


def test_a_merge_that_changed_no_row_is_no_change(tmp_path: Path) -> None:
    builder = feed(tmp_path)
    builder.append(rows(1))
    add = builder.state()[-1]
    none = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
    rewritten = [remove_action(add), builder.write_file(rows(1))]
    builder.commit(*rewritten, operation="MERGE", operationMetrics=none)
    assert changes(tmp_path, startingVersion=2) == []
    assert DeltaLog(tmp_path).changes(2).to_arrow().num_rows == 0


def test_a_table_that_does_not_record_changes_is_refused(tmp_path: Path) -> None:
    table(tmp_path).append(rows(1))
    for options in ({}, {"startingVersion": 0}):
        source = open_source(tmp_path, readChangeFeed="true", **options)
        with pytest.raises(ChangeDataError, match="enableChangeDataFeed"):
            source.latest_offset(source.initial_offset())


def test_recording_that_began_later_or_ends_is_refused_where_it_is_not_on(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    builder.commit(new_metadata(tmp_path, IDS, properties=FEED))
    builder.append(rows(2))
    assert changes(tmp_path, startingVersion=2) == [[(2, "insert", 3)]]
    early = open_source(tmp_path, readChangeFeed="true", startingVersion=1)
    with pytest.raises(ChangeDataError, match=r"\[1\]"):
        early.latest_offset(early.initial_offset())
    source = open_source(tmp_path, readChangeFeed="true")
    end = end_of(source)
    builder.commit(new_metadata(tmp_path, IDS))
    with pytest.raises(ChangeDataError, match=r"\[4\]"):
        source.latest_offset(end)


def test_options_for_changing_commits_do_not_matter_to_changes(tmp_path: Path) -> None:
    builder = feed(tmp_path)
    builder.append(rows(1))
    builder.commit(remove_action(builder.state()[-1]), operation="DELETE")
    expected = [[(1, "insert", 1), (1, "delete", 2)]]
    assert changes(tmp_path, startingVersion=0) == expected
    assert changes(tmp_path, startingVersion=0, skipChangeCommits="true") == expected


def test_columns_of_changes_can_be_chosen(tmp_path: Path) -> None:
    feed(tmp_path).append(rows(1))
    source = open_source(tmp_path, readChangeFeed="true", columns="_change_type,id")
    start = source.initial_offset()
    assert read(source, start, source.latest_offset(start)) == [{"id": 1, "_change_type": "insert"}]
