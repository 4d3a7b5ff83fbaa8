from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.exceptions import DeltaError, SchemaError, UnsupportedFeatureError
from delta_ds.kernel.commands.streaming.schema_log import check_locations
from delta_ds.kernel.format.options.stream_read import StreamReadOptions, parse_stream_read_options
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.testing import TableBuilder, protocol_action
from spark_tests.behaviour.kernel.commands.streaming.streams import (
    batches,
    end_of,
    everything,
    new_metadata,
    open_source,
    read,
    rows,
    table,
)
from spark_tests.behaviour.kernel.transaction.write.tables import schema

WIDE = pa.schema([("id", pa.int64()), ("more", pa.string())])


def field(name: str, physical: str, number: int, kind: str = "long") -> dict[str, Any]:
    notes = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "metadata": notes}


MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
ID, V, RENAMED = field("id", "id", 1), field("v", "col-v", 2), field("w", "col-v", 2)


def mapped(path: Path, *fields: dict[str, Any]) -> TableBuilder:
    builder = TableBuilder(path)
    builder.create(schema(*fields), properties=MAPPED, reader_features=["columnMapping", "typeWidening"])
    builder.append(pa.table({"id": pa.array([1], pa.int64()), "col-v": pa.array([10], pa.int64())}))
    return builder


def changed(builder: TableBuilder, fields: Sequence[dict[str, Any]], **more: str) -> None:
    builder.commit(new_metadata(builder.path, schema(*fields), properties={**MAPPED, **more}))


def refusal(source: Any, at: Any) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        while (end := source.latest_offset(at)) != at:
            source.tasks(at, end)
            at = end
    return caught.value


def test_an_added_column_stops_the_stream_once(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    builder.append(rows(2))
    builder.commit(new_metadata(tmp_path, WIDE))
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "more": ["x"]}))
    error = refusal(source, end)
    assert isinstance(error, SchemaError)
    assert error.condition == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert "version 3" in str(error) and "readStream" in str(error)
    restarted = open_source(tmp_path)
    found = read(restarted, end, restarted.latest_offset(end))
    assert found == [{"id": 2, "more": None}, {"id": 3, "more": "x"}]


def test_the_advice_names_the_starting_version_where_one_was_given(tmp_path: Path) -> None:
    builder = table(tmp_path)
    source = open_source(tmp_path, startingVersion=0)
    builder.commit(new_metadata(tmp_path, WIDE))
    error = refusal(source, source.initial_offset())
    assert error.condition == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"


def test_other_properties_do_not_stop_the_stream(tmp_path: Path) -> None:
    import json

    from delta_ds.kernel.log.snapshot import open_snapshot
    from delta_ds.kernel.storage.open import open_storage

    builder = table(tmp_path)
    source = open_source(tmp_path)
    end = end_of(source)
    builder.commit(
        new_metadata(tmp_path, open_snapshot(open_storage(tmp_path)).schema, properties={"a": "b"})
    )
    builder.append(rows(1))
    assert [found for _, found in batches(source, end)] == [[1]]
    assert json.loads(end.to_json())["version"] == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([("id", pa.int64()), ("a", pa.int32())], [("id", pa.int64())]),
        ([("id", pa.int64())], [("id", pa.string())]),
        ([("id", pa.int32())], [("id", pa.int64())]),
        ([("id", pa.int64(), True)], [("id", pa.int64(), False)]),
        ([("id", pa.list_(pa.int32()))], [("id", pa.list_(pa.int64()))]),
    ],
)
def test_data_that_the_new_schema_cannot_read_needs_a_new_checkpoint(
    tmp_path: Path, old: list[Any], new: list[Any]
) -> None:
    before, after = (pa.schema([pa.field(*f) for f in fields]) for fields in (old, new))
    builder = table(tmp_path, before)
    builder.append(pa.table({f.name: pa.array([], f.type) for f in before}))
    builder.commit(new_metadata(tmp_path, after))
    source = open_source(tmp_path, startingVersion=1)
    error = refusal(source, source.initial_offset())
    assert error.condition == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
    assert "new checkpoint" in str(error)


@pytest.mark.parametrize("fields", [[ID, RENAMED], [ID]])
def test_a_renamed_or_dropped_column_asks_for_a_schema_log(
    tmp_path: Path, fields: list[dict[str, Any]]
) -> None:
    builder = mapped(tmp_path, ID, V)
    source = open_source(tmp_path)
    end = end_of(source)
    changed(builder, fields)
    for stream in (source, open_source(tmp_path)):
        error = refusal(stream, end)
        assert error.condition == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
        assert "schemaTrackingLocation" in str(error) and "v was" in str(error)


def test_a_snapshot_after_the_change_is_read_without_ado(tmp_path: Path) -> None:
    builder = mapped(tmp_path, ID, V)
    changed(builder, [ID, RENAMED])
    source = open_source(tmp_path)
    start = source.initial_offset()
    assert read(source, start, source.latest_offset(start)) == [{"id": 1, "w": 10}]


def test_a_wider_type_stops_the_stream_once(tmp_path: Path) -> None:
    narrow = field("v", "col-v", 2, "integer")
    builder = mapped(tmp_path, ID, narrow)
    builder.append(pa.table({"id": pa.array([2], pa.int64()), "col-v": pa.array([20], pa.int32())}))
    source = open_source(tmp_path, startingVersion=2)
    start = source.initial_offset()
    changes = [{"fromType": "integer", "toType": "long"}]
    wide = {**V, "metadata": {**V["metadata"], "delta.typeChanges": changes}}
    changed(builder, [ID, wide])
    assert refusal(source, start).condition == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
    restarted = open_source(tmp_path, startingVersion=2)
    assert read(restarted, start, restarted.latest_offset(start)) == [{"id": 2, "v": 20}]


def test_a_protocol_that_cannot_be_read_stops_the_stream(tmp_path: Path) -> None:
    builder = table(tmp_path)
    source = open_source(tmp_path)
    end = end_of(source)
    builder.commit(protocol_action(reader_features=["featureOfTheFuture"]))
    assert isinstance(refusal(source, end), UnsupportedFeatureError)


# --- with a schema log


def tracked(path: Path, **options: str) -> Any:
    return open_source(path / "t", schemaTrackingLocation=str(path / "log"), **options)


def test_a_rename_with_a_schema_log_needs_an_agreement_and_goes_on(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    source = tracked(tmp_path)
    at = end_of(source)
    builder.append(pa.table({"id": pa.array([2], pa.int64()), "col-v": pa.array([20], pa.int64())}))
    changed(builder, [ID, RENAMED])
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "col-v": pa.array([30], pa.int64())}))
    before = source.latest_offset(at)
    assert read(source, at, before) == [{"id": 2, "v": 20}]
    assert source.latest_offset(at) == before
    error = refusal(source, before)
    assert error.condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    error = refusal(tracked(tmp_path), before)
    assert error.condition == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    assert "RENAME COLUMN" in str(error) and "allowSourceColumnRename" in str(error)
    assert refusal(tracked(tmp_path, allowSourceColumnRename="2"), before).condition == error.condition
    for agreed in ("always", "3"):
        restarted = tracked(tmp_path, allowSourceColumnRename=agreed)
        assert restarted.schema.names == ["id", "w"]
        assert read(restarted, before, restarted.latest_offset(before)) == [{"id": 3, "w": 30}]


def test_a_process_that_is_not_told_where_it_is_stops_before_the_next_schema(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    source = tracked(tmp_path)
    at = source.all_available()
    assert read(source, source.initial_offset(), at) == [{"id": 1, "v": 10}]
    builder.append(pa.table({"id": pa.array([2], pa.int64()), "col-v": pa.array([20], pa.int64())}))
    changed(builder, [ID, RENAMED])
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "col-v": pa.array([30], pa.int64())}))
    restarted = tracked(tmp_path)
    end = restarted.all_available()
    assert read(restarted, at, end) == [{"id": 2, "v": 20}]
    assert refusal(restarted, end).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    agreed = tracked(tmp_path, allowSourceColumnRename="always")
    assert read(agreed, end, agreed.all_available()) == [{"id": 3, "w": 30}]


def test_the_schema_log_has_the_files_of_delta_spark(tmp_path: Path) -> None:
    import json

    builder = mapped(tmp_path / "t", ID, V)
    source = tracked(tmp_path, streamingSourceTrackingId="x")
    table_id = source.read_state.metadata.id
    source.latest_offset(source.initial_offset())
    folder = tmp_path / "log" / f"_schema_log_{table_id}_x"
    version, body = (folder / "0").read_text().split("\n")
    entry = json.loads(body)
    assert version == "v1"
    assert (entry["tableId"], entry["deltaCommitVersion"]) == (table_id, builder.version)
    assert json.loads(entry["dataSchemaJson"])["fields"][1]["name"] == "v"
    assert json.loads(entry["protocolJson"])["protocol"]["minReaderVersion"] == 3
    assert entry["tableConfigurations"] == MAPPED


def test_a_backlog_that_begins_before_a_rename_is_read_with_its_own_schema(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    changed(builder, [ID, RENAMED])
    source = tracked(tmp_path, startingVersion="0")
    assert refusal(source, source.initial_offset()).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    restarted = tracked(tmp_path, startingVersion="0")
    start = restarted.initial_offset()
    end = restarted.latest_offset(start)
    assert read(restarted, start, end) == [{"id": 1, "v": 10}]
    assert refusal(restarted, end).condition == "DELTA_STREAMING_METADATA_EVOLUTION"


def test_a_schema_log_follows_added_columns_without_an_agreement(tmp_path: Path) -> None:
    builder = table(tmp_path / "t")
    builder.append(rows(1))
    source = tracked(tmp_path)
    at = end_of(source)
    builder.commit(new_metadata(tmp_path / "t", WIDE))
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "more": ["x"]}))
    assert refusal(source, at).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    restarted = tracked(tmp_path)
    assert read(restarted, at, restarted.latest_offset(at)) == [{"id": 3, "more": "x"}]


def test_two_streams_with_one_schema_log_are_told_apart(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    source, other = tracked(tmp_path), tracked(tmp_path)
    at = end_of(source)
    with pytest.raises(SchemaError) as caught:
        other.latest_offset(at)
    assert caught.value.condition == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    assert builder.version == 1


def test_a_damaged_schema_log_and_one_of_another_table_are_refused(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    source = tracked(tmp_path)
    source.latest_offset(source.initial_offset())
    file = next((tmp_path / "log").glob("*/0"))
    whole = file.read_text()
    file.write_text(whole.replace(source.read_state.metadata.id, "other"))
    with pytest.raises(SchemaError) as caught:
        tracked(tmp_path)
    assert caught.value.condition == "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"
    for text in ("", "v2\n{}", "v1\n", "v1\n{", "v1\n[]", "v1\n{}"):
        file.write_text(text)
        with pytest.raises(DeltaError) as damaged:
            tracked(tmp_path)
        assert damaged.value.condition == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"
    assert builder.version == 1


def test_a_new_query_with_an_old_schema_log_begins_with_the_schema_of_its_snapshot(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    first = tracked(tmp_path)
    end_of(first)
    changed(builder, [ID, RENAMED])
    anew = tracked(tmp_path)
    assert refusal(anew, anew.initial_offset()).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    again = tracked(tmp_path)
    start = again.initial_offset()
    assert read(again, start, again.latest_offset(start)) == [{"id": 1, "w": 10}]


def test_a_stream_that_begins_after_a_change_it_was_not_opened_with_is_stopped(tmp_path: Path) -> None:
    builder = table(tmp_path)
    opened = {start: open_source(tmp_path, startingVersion=start) for start in ("latest", "2")}
    builder.commit(new_metadata(tmp_path, WIDE))
    builder.append(pa.table({"id": pa.array([2], pa.int64()), "more": ["x"]}))
    for source in opened.values():
        start = source.initial_offset()
        assert start.version >= 2
        builder.append(pa.table({"id": pa.array([3], pa.int64()), "more": ["y"]}))
        error = refusal(source, start)
        assert error.condition == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
        assert "readStream" in str(error)


def test_a_schema_log_begun_with_a_source_opened_earlier_has_the_schema_of_the_start(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    source = tracked(tmp_path, startingVersion="latest")
    changed(builder, [ID, RENAMED])
    start = source.initial_offset()
    assert start.version == 3
    assert refusal(source, start).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    restarted = tracked(tmp_path, startingVersion="latest")
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "col-v": pa.array([30], pa.int64())}))
    assert read(restarted, start, restarted.latest_offset(start)) == [{"id": 3, "w": 30}]


def test_a_new_query_with_an_old_schema_log_does_not_pass_over_changes(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    end_of(tracked(tmp_path))
    changed(builder, [ID, RENAMED])
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "col-v": pa.array([30], pa.int64())}))
    anew = tracked(tmp_path, startingVersion="3")
    assert refusal(anew, anew.initial_offset()).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    agreed = tracked(tmp_path, startingVersion="3", allowSourceColumnRename="always")
    start = agreed.initial_offset()
    assert read(agreed, start, agreed.latest_offset(start)) == [{"id": 3, "w": 30}]


def test_a_schema_log_may_begin_after_a_batch_that_spans_an_added_column(tmp_path: Path) -> None:
    builder = table(tmp_path / "t")
    builder.append(rows(1))
    start = end_of(open_source(tmp_path / "t"))
    builder.append(rows(2))
    builder.commit(new_metadata(tmp_path / "t", WIDE))
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "more": ["x"]}))
    planned = open_source(tmp_path / "t").latest_offset(start)
    source = tracked(tmp_path)
    assert read(source, start, planned) == [{"id": 2, "more": None}, {"id": 3, "more": "x"}]
    assert source.latest_offset(planned) == planned


def test_a_schema_log_cannot_begin_with_a_batch_that_spans_a_rename(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    untracked = open_source(tmp_path / "t")
    start = end_of(untracked)
    changed(builder, [ID, RENAMED])
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "col-v": pa.array([30], pa.int64())}))
    with pytest.raises(SchemaError) as caught:
        tracked(tmp_path).tasks(untracked.initial_offset().at(1, 1), start.at(4))
    assert caught.value.condition == "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"
    assert not list((tmp_path / "log").glob("*/*"))


def test_with_a_schema_log_another_table_in_a_commit_is_not_followed(tmp_path: Path) -> None:
    builder = mapped(tmp_path / "t", ID, V)
    source = tracked(tmp_path)
    at = end_of(source)
    replaced = new_metadata(tmp_path / "t", schema(ID, V), properties=MAPPED)
    replaced["metaData"]["id"] = "another"
    builder.commit(replaced)
    assert refusal(source, at).condition == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_with_a_schema_log_changes_that_are_no_longer_recorded_stop_the_stream(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    builder = TableBuilder(tmp_path / "t")
    builder.create(
        schema(ID, V),
        properties={**MAPPED, **feed},
        reader_features=["columnMapping"],
        writer_features=["changeDataFeed"],
    )
    source = tracked(tmp_path, readChangeFeed="true")
    at = end_of(source)
    changed(builder, [ID, V])
    builder.append(pa.table({"id": pa.array([3], pa.int64()), "col-v": pa.array([30], pa.int64())}))
    assert refusal(source, at).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    error = refusal(tracked(tmp_path, readChangeFeed="true"), at)
    assert error.condition == "DELTA_MISSING_CHANGE_DATA" and "version [1]" in str(error)


def test_everything_of_a_mapped_table_is_read_by_physical_name(tmp_path: Path) -> None:
    builder = mapped(tmp_path, ID, V)
    assert everything(open_source(builder.path)) == [[1]]
    assert isinstance(open_source(builder.path).schema, StructType)


# --- where the schema logs of a query lie


def located(path: Path, location: str, **options: str) -> StreamReadOptions:
    return parse_stream_read_options({"path": str(path), "schemaTrackingLocation": location, **options})


@pytest.mark.parametrize(
    ("location", "checkpoint"),
    [
        ("/c/schemas", "/c"), ("/c", "/c"), ("/c/", "file:/c"), ("file:///c/a/b", "/c/"), ("/x/../c/s", "/c"),
        ("s3a://b/c/s", "s3://b/c"), ("c/s", "./c"),
    ],
)  # fmt: skip
def test_a_schema_log_lies_below_the_checkpoint(tmp_path: Path, location: str, checkpoint: str) -> None:
    check_locations([located(tmp_path, location)], checkpoint)


@pytest.mark.parametrize(
    ("location", "checkpoint"),
    [
        ("/c2", "/c"), ("/c/../s", "/c"), ("/", "/c"), ("s3://b/c/s", "/c"), ("s3://other/c/s", "s3://b/c"),
        ("s3://b/c/../s", "s3://b/c"), ("/c/s", None),
    ],
)  # fmt: skip
def test_a_schema_log_elsewhere_is_refused_unless_it_is_allowed(
    tmp_path: Path, location: str, checkpoint: str | None
) -> None:
    source = located(tmp_path, location)
    with pytest.raises(SchemaError, match="must be placed under checkpoint location") as raised:
        check_locations([source], checkpoint)
    assert raised.value.condition == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    check_locations([source], checkpoint, anywhere=True)


def test_two_sources_of_a_query_have_schema_logs_of_their_own(tmp_path: Path) -> None:
    for name in ("t", "u"):
        table(tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    log, t, u = str(tmp_path / "c"), tmp_path / "t", tmp_path / "u"
    one = located(t, log)
    without = parse_stream_read_options({"path": str(t)})
    for others in ([located(u, log)], [located(t, f"{log}/2")], [without, without]):
        check_locations([one, *others], log)
    check_locations([one, located(t, log, streamingSourceTrackingId="2")], log)
    for other in (one, located(t, f"{log}/"), located(t, f"file:{log}"), located(tmp_path / "link", log)):
        for anywhere in (False, True):
            with pytest.raises(SchemaError, match="two sources of the query") as raised:
                check_locations([one, other], log, anywhere=anywhere)
            assert raised.value.condition == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
