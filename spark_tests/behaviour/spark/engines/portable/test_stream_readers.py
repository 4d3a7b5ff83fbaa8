"""The stream readers as Spark calls them, without Spark: those for 4.1 and for later versions."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from delta_ds.exceptions import InvalidOptionError, NotADeltaTableError, SchemaError
from delta_ds.spark.engines.portable.source import DeltaSource
from delta_ds.spark.engines.portable.stream_reader import DeltaStreamReader, Spark41StreamReader
from delta_ds.testing import TableBuilder, metadata_action
from spark_tests.behaviour.kernel.commands.streaming.streams import IDS, rows, table

SCHEMA = StructType().add("id", LongType())


@pytest.fixture
def ten(tmp_path: Path) -> TableBuilder:
    """A table of ten commits with a row each, from 0 on; version 0 has none."""
    builder = table(tmp_path / "t")
    for number in range(10):
        builder.append(rows(number))
    return builder


def planned(builder: TableBuilder, **options: Any) -> DeltaSource:
    """The source as it comes out of the process that settled the schema."""
    source = DeltaSource({"path": str(builder.path), **options})
    assert source.schema().fieldNames()[0] == "id"
    copy: DeltaSource = pickle.loads(pickle.dumps(source))
    return copy


def limited(builder: TableBuilder, **options: Any) -> Any:
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.1 has no limits")
    return planned(builder, **options).streamReader(SCHEMA)


def unasked(builder: TableBuilder, **options: Any) -> Spark41StreamReader:
    reader = planned(builder, **options).streamReader(SCHEMA)
    assert isinstance(reader, DeltaStreamReader)
    return Spark41StreamReader(reader._open_source, SCHEMA)


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def read(reader: DeltaStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    partitions = reader.partitions(through_json(start), through_json(end))
    # Tasks get another reader, made in another process.
    task = pickle.loads(pickle.dumps(DeltaStreamReader(lambda: pytest.fail("a task opens no table"), SCHEMA)))
    found = []
    for partition in pickle.loads(pickle.dumps(partitions)):
        for batch in task.read(partition):
            assert batch.schema == pa.schema([("id", pa.int64())])
            found += batch.column(0).to_pylist()
    return sorted(found)


def run(reader: Any, start: dict[str, Any] | None = None) -> Iterator[list[int]]:
    """Batches as Spark 4.2 and later run them, up to the first that is empty."""
    at = reader.initialOffset() if start is None else start
    while (end := reader.latestOffset(through_json(at), reader.getDefaultReadLimit())) != at:
        yield read(reader, at, end)
        at = end


class TestLimited:
    def test_batches_keep_to_the_limits_of_the_options(self, ten: TableBuilder) -> None:
        assert [len(batch) for batch in run(limited(ten, maxFilesPerTrigger="4"))] == [4, 4, 2]
        size = next(iter(ten.path.glob("*.parquet"))).stat().st_size
        both = limited(ten, maxFilesPerTrigger="4", maxBytesPerTrigger=str(2 * size))
        assert [len(batch) for batch in run(both)][:2] == [2, 2]

    def test_everything_comes_where_spark_wants_all(self, ten: TableBuilder) -> None:
        reader = limited(ten, maxFilesPerTrigger="4")
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

        start = reader.initialOffset()
        for limit, expected in ((ReadAllAvailable(), 10), (ReadMaxFiles(3), 3), (ReadMaxBytes(1), 1)):
            end = reader.latestOffset(start, limit)
            assert len(read(reader, start, end)) == expected
        assert limited(ten, maxBytesPerTrigger="5").getDefaultReadLimit() == ReadMaxBytes(5)
        assert limited(ten).getDefaultReadLimit() == ReadMaxFiles(1000)

    def test_available_now_ends_with_what_was_there(self, ten: TableBuilder) -> None:
        reader = limited(ten, maxFilesPerTrigger="3")
        reader.prepareForTriggerAvailableNow()
        batches = run(reader)
        found = next(batches)
        ten.append(rows(99))
        assert sorted(found + [n for batch in batches for n in batch]) == list(range(10))

    def test_restart_with_a_starting_version_that_is_gone_goes_on(self, ten: TableBuilder) -> None:
        reader = limited(ten, startingVersion="1", maxFilesPerTrigger="3")
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        ten.checkpoint(version=9)
        for version in range(3):
            (ten.log / f"{version:020}.json").unlink()
        again = limited(ten, startingVersion="1")
        again.prepareForTriggerAvailableNow()
        assert [n for batch in run(again, end) for n in batch] == list(range(3, 10))


class TestUnasked:
    """Spark 4.1: `latestOffset` is told nothing."""

    def test_first_answer_is_the_end_of_the_log(self, ten: TableBuilder) -> None:
        # It may be for availableNow, which asks once.
        reader = unasked(ten, maxFilesPerTrigger="3")
        end = reader.latestOffset()
        assert read(reader, reader.initialOffset(), end) == list(range(10))

    def test_later_batches_keep_to_the_limits(self, ten: TableBuilder) -> None:
        reader = unasked(ten, maxFilesPerTrigger="3")
        at = reader.latestOffset()
        read(reader, reader.initialOffset(), at)
        for number in range(10, 17):
            ten.append(rows(number))
        found = []
        while (end := reader.latestOffset()) != at:
            found.append(read(reader, at, end))
            at = end
        assert found == [[10, 11, 12], [13, 14, 15], [16]]

    def test_restarted_query_keeps_to_the_limits_at_once(self, ten: TableBuilder) -> None:
        before = unasked(ten)
        at = before.latestOffset()
        for number in range(10, 14):
            ten.append(rows(number))
        reader = unasked(ten, maxFilesPerTrigger="3")
        # What Spark does first with a query that has a checkpoint (`AcceptsLatestSeenOffset`).
        assert reader.partitions(through_json(at), through_json(at)) == []
        assert read(reader, at, reader.latestOffset()) == [10, 11, 12]

    def test_its_latest_offset_takes_no_parameters(self) -> None:
        import inspect

        assert list(inspect.signature(Spark41StreamReader.latestOffset).parameters) == ["self"]


def test_options_tell_streams_from_batches(ten: TableBuilder) -> None:
    def source(**options: str) -> DeltaSource:
        return DeltaSource({"path": str(ten.path), **options})

    assert source(maxFilesPerTrigger="3").schema() == source().schema() == SCHEMA
    # Neither makes sense for a batch read of rows; which it is shows later.
    assert source(startingVersion="latest").schema() == SCHEMA
    with pytest.raises(InvalidOptionError):
        source(startingVersion="latest").reader(SCHEMA)
    with pytest.raises(InvalidOptionError, match="ignoreDeletes"):
        source(ignoreDelete="true", maxFilesPerTrigger="3").schema()
    with pytest.raises(InvalidOptionError, match="cannot travel in time"):
        source(versionAsOf="1").streamReader(SCHEMA).initialOffset()


def test_stream_begins_with_the_table_as_it_is_when_it_starts(ten: TableBuilder) -> None:
    source = planned(ten)
    ten.append(rows(10))
    reader = source.streamReader(SCHEMA)
    assert isinstance(reader, DeltaStreamReader)
    begun = Spark41StreamReader(reader._open_source, SCHEMA)
    assert begun.initialOffset()["version"] == 11
    assert read(begun, begun.initialOffset(), begun.latestOffset()) == list(range(11))


def test_nothing_is_opened_before_the_first_question(tmp_path: Path) -> None:
    # What a reader raises while it is made, Spark loses.
    reader = DeltaSource({"path": str(tmp_path / "nowhere")}).streamReader(SCHEMA)
    with pytest.raises(NotADeltaTableError):
        reader.initialOffset()


def test_given_schema_that_does_not_fit_is_refused(ten: TableBuilder) -> None:
    reader = DeltaSource({"path": str(ten.path)}).streamReader(StructType().add("other", LongType()))
    with pytest.raises(SchemaError, match="other"):
        reader.initialOffset()


def test_schema_of_load_is_kept_when_the_table_gets_another(ten: TableBuilder) -> None:
    source = planned(ten, maxFilesPerTrigger="100")
    wider = pa.schema([*IDS, ("more", pa.int64())])
    ten.commit(metadata_action(wider))
    reader: Any = source.streamReader(SCHEMA)
    assert [f.name for f in reader._source.schema] == ["id"]
