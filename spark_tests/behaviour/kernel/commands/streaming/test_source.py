from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, LogError, UnsupportedOperationError
from delta_ds.kernel.commands.streaming.offsets import ALL_AVAILABLE, ReadLimits, StreamOffset
from delta_ds.testing import remove_action
from spark_tests.behaviour.kernel.commands.streaming.streams import (
    again,
    batches,
    end_of,
    everything,
    ids,
    open_source,
    rows,
    table,
)


def condition(caught: pytest.ExceptionInfo[DeltaError]) -> str:
    return caught.value.condition


def test_a_stream_gives_the_snapshot_and_then_what_is_added(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    builder.append(rows(2))
    source = open_source(tmp_path)
    start = source.initial_offset()
    assert start.position == (2, 0, True)
    first = source.latest_offset(start)
    assert first.position == (3, 0, False)
    assert sorted(ids(source, start, first)) == [1, 2]
    assert source.latest_offset(first) == first
    builder.append(rows(3))
    second = source.latest_offset(first)
    assert ids(source, first, second) == [3]


def test_the_snapshot_comes_in_order_of_modification_time_and_path(tmp_path: Path) -> None:
    builder = table(tmp_path)
    adds = [builder.write_file(rows(n), path=f"{name}.parquet") for n, name in enumerate("cab")]
    adds[0]["add"]["modificationTime"] -= 1
    builder.commit(*adds)
    assert everything(open_source(tmp_path, maxFilesPerTrigger=1)) == [[0], [1], [2]]


def test_a_batch_holds_as_many_files_as_the_limit_says(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.commit(*[builder.write_file(rows(n), path=f"{n}.parquet") for n in range(5)])
    builder.commit(*[builder.write_file(rows(n)) for n in range(5, 8)])
    builder.append(rows(8))
    source = open_source(tmp_path, startingVersion=0, maxFilesPerTrigger=2)
    assert everything(source) == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert [len(b) for b in everything(source, ReadLimits(max_files=4))] == [4, 4, 1]
    assert everything(source, ALL_AVAILABLE) == [list(range(9))]


def test_the_limit_of_bytes_lets_the_file_that_passes_it_through(tmp_path: Path) -> None:
    builder = table(tmp_path)
    adds = [builder.write_file(rows(n), path=f"{n}.parquet") for n in range(4)]
    builder.commit(*adds)
    size = adds[0]["add"]["size"]
    source = open_source(tmp_path, maxBytesPerTrigger="1b")
    assert everything(source) == [[0], [1], [2], [3]]
    assert everything(source, ReadLimits(max_bytes=size + 1)) == [[0, 1], [2, 3]]
    assert everything(source, ReadLimits(max_files=1, max_bytes=size * 9)) == [[0], [1], [2], [3]]


def test_files_that_only_move_rows_are_not_read(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    old = builder.state()[-1]
    compacted = builder.write_file(rows(1))
    compacted["add"]["dataChange"] = False
    gone = remove_action(old)
    gone["remove"]["dataChange"] = False
    builder.commit(gone, compacted, operation="OPTIMIZE")
    builder.append(rows(2))
    assert [found for _, found in batches(source, end)] == [[2]]


def test_a_crash_in_the_first_batch_gets_the_same_rows_after_more_came(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    planned = source.latest_offset(source.initial_offset())
    builder.append(rows(2))
    restarted = open_source(tmp_path)
    end = restarted.offset(planned.to_json())
    # Spark has no committed offset yet, so it asks for the beginning once more.
    assert ids(restarted, restarted.initial_offset(), end) == [1]
    assert [found for _, found in batches(restarted, end)] == [[2]]


def test_latest_gives_only_what_comes_after_the_start_even_after_a_crash(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path, startingVersion="latest")
    start = source.initial_offset()
    assert source.latest_offset(start) == start
    builder.append(rows(2))
    planned = source.latest_offset(start)
    builder.append(rows(3))
    restarted = open_source(tmp_path, startingVersion="latest")
    assert ids(restarted, restarted.initial_offset(), restarted.offset(planned.to_dict())) == [2]


def test_available_now_ends_where_the_table_ended(tmp_path: Path) -> None:
    builder = table(tmp_path)
    for n in range(4):
        builder.append(rows(n))
    source = open_source(tmp_path, maxFilesPerTrigger=3)
    at = start = source.initial_offset()
    bound = source.available_now(start)
    builder.append(rows(99))
    found = []
    while (end := source.latest_offset(at, bound=bound)) != at:
        found.append(len(ids(source, at, end)))
        at = end
    assert (found, at) == ([3, 1], bound)


def test_without_a_start_the_latest_offset_is_the_end_of_the_log(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = source.available_now()
    assert ids(source, source.initial_offset(), end) == [1]
    builder.append(rows(2))
    later = open_source(tmp_path)
    assert ids(later, later.offset(end.to_json()), later.available_now()) == [2]
    # The offset of the crashed first batch knows where the query began.
    assert ids(later, later.initial_offset(), end) == [1]


def test_a_delete_stops_the_stream_unless_it_is_ignored(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    add = builder.state()[-1]
    end = end_of(open_source(tmp_path))
    builder.commit(remove_action(add), operation="DELETE")
    builder.append(rows(2))
    with pytest.raises(UnsupportedOperationError, match=r"at version 2.*ignoreDeletes") as caught:
        open_source(tmp_path).latest_offset(end)
    assert condition(caught) == "DELTA_SOURCE_IGNORE_DELETE"
    for option in ("ignoreDeletes", "ignoreChanges", "skipChangeCommits", "ignoreFileDeletion"):
        source = open_source(tmp_path, **{option: "true"})
        assert [found for _, found in batches(source, end)] == [[2]]


def test_an_update_stops_the_stream_or_is_skipped_or_read_again(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1, 2))
    add = builder.state()[-1]
    end = end_of(open_source(tmp_path))
    builder.commit(remove_action(add), builder.write_file(rows(1, 20)), operation="UPDATE")
    builder.append(rows(3))
    for options in ({}, {"ignoreDeletes": "true"}):
        with pytest.raises(
            UnsupportedOperationError, match=r"UPDATE.*at version 2.*skipChangeCommits"
        ) as caught:
            open_source(tmp_path, **options).latest_offset(end)
        assert condition(caught) == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    skipping = open_source(tmp_path, skipChangeCommits="true")
    assert [found for _, found in batches(skipping, end)] == [[3]]
    for option in ("ignoreChanges", "ignoreFileDeletion"):
        assert [found for _, found in batches(open_source(tmp_path, **{option: "true"}), end)] == [[1, 20, 3]]


def test_a_deletion_vector_counts_in_the_snapshot_and_stops_the_stream_later(tmp_path: Path) -> None:
    builder = table(tmp_path, reader_features=["deletionVectors"])
    add = builder.write_file(rows(1, 2, 3))
    builder.commit(add)
    tailing = end_of(open_source(tmp_path))
    builder.delete_rows(add, [1])
    assert everything(open_source(tmp_path)) == [[1, 3]]
    with pytest.raises(UnsupportedOperationError) as caught:
        open_source(tmp_path).latest_offset(tailing)
    assert condition(caught) == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    assert [f for _, f in batches(open_source(tmp_path, ignoreChanges="true"), tailing)] == [[1, 3]]


def test_files_that_match_the_regex_are_left_out(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.commit(*[builder.write_file(rows(n), path=f"f{n}.parquet") for n in range(4)])
    assert everything(open_source(tmp_path, excludeRegex="f[12]")) == [[0, 3]]


def test_a_commit_that_is_gone_ends_the_stream_or_is_passed_over(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    end = end_of(open_source(tmp_path))
    for n in (2, 3):
        builder.append(rows(n))
    builder.checkpoint()
    builder.commit_file(2).unlink()
    for version in (0, 1):
        builder.commit_file(version).unlink()
    with pytest.raises(LogError, match="version 2.*failOnDataLoss") as caught:
        open_source(tmp_path).latest_offset(end)
    assert condition(caught) == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert [f for _, f in batches(open_source(tmp_path, failOnDataLoss="false"), end)] == [[3]]


def test_a_starting_snapshot_that_the_log_has_lost_says_that_the_query_lags(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    start = open_source(tmp_path).initial_offset()
    builder.append(rows(2))
    builder.checkpoint()
    for version in (0, 1):
        builder.commit_file(version).unlink()
    with pytest.raises(LogError) as caught:
        open_source(tmp_path).latest_offset(start)
    assert condition(caught) == "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"


def test_a_batch_whose_commits_vanished_from_the_end_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path, startingVersion=0)
    start, end = source.initial_offset(), source.latest_offset(source.initial_offset())
    builder.commit_file(1).unlink()
    with pytest.raises(LogError) as caught:
        again(source).tasks(start, end)
    assert condition(caught) == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


def test_an_offset_of_another_table_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        table(tmp_path / name).append(rows(1))
    offset = open_source(tmp_path / "a").initial_offset()
    other = open_source(tmp_path / "b")
    with pytest.raises(UnsupportedOperationError) as caught:
        other.offset(offset.to_json())
    assert condition(caught) == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    with pytest.raises(UnsupportedOperationError):
        other.latest_offset(offset)


def test_a_table_created_anew_under_a_running_stream_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    for version in (0, 1):
        builder.commit_file(version).unlink()
    other = table(tmp_path)
    for n in range(3):
        other.append(rows(n))
    with pytest.raises(UnsupportedOperationError) as caught:
        open_source(tmp_path).offset(end.to_dict())
    assert condition(caught) == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_stream_ends_where_its_table_is_replaced_and_another_reads_past_that(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(rows(1))
    running = open_source(tmp_path, startingVersion=0)
    at = end_of(running)
    log.write(rows(2), mode="overwrite", options={"replaceTable": "true"})
    other = open_source(tmp_path, startingVersion=0, skipChangeCommits="true")
    log.write(rows(3))
    for refused in (lambda: other.offset(at.to_dict()), lambda: running.latest_offset(at)):
        with pytest.raises(UnsupportedOperationError) as caught:
            refused()
        assert condition(caught) == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert sorted(n for batch in everything(other) for n in batch) == [1, 3]


@pytest.mark.parametrize("commits", [1, 2, 9])
def test_a_table_created_anew_while_the_stream_runs_is_noticed_by_the_next_poll(
    tmp_path: Path, commits: int
) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    shutil.rmtree(tmp_path / "_delta_log")
    other = table(tmp_path)
    for n in range(commits - 1):
        other.append(rows(n, n))
    with pytest.raises(UnsupportedOperationError) as caught:
        source.latest_offset(end)
    assert condition(caught) == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_table_that_was_put_back_while_the_stream_runs_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    builder.commit_file(1).unlink()
    with pytest.raises(LogError) as caught:
        source.latest_offset(end)
    assert condition(caught) == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


def test_a_log_that_was_copied_while_the_stream_runs_is_read_on(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    os.utime(builder.commit_file(1), (1, 1))
    assert source.latest_offset(end) == end
    builder.append(rows(2))
    assert [found for _, found in batches(source, end)] == [[2]]


def test_commits_cleaned_up_behind_a_running_stream_do_not_stop_it(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    builder.append(rows(2))
    builder.checkpoint()
    for version in (0, 1):
        builder.commit_file(version).unlink()
    assert [found for _, found in batches(source, end)] == [[2]]


def test_many_commits_at_once_come_all_to_a_running_stream(tmp_path: Path) -> None:
    builder = table(tmp_path)
    source = open_source(tmp_path)
    end = end_of(source)
    for n in range(20):
        builder.append(rows(n))
    assert [found for _, found in batches(source, end)] == [list(range(20))]


def test_blank_lines_in_commits_do_not_mix_up_their_files(tmp_path: Path) -> None:
    builder = table(tmp_path)
    for n in range(3):
        builder.append(rows(n))
    file = builder.commit_file(2)
    file.write_bytes(b"\n" + file.read_bytes().replace(b"\n", b"\n\n"))
    assert everything(open_source(tmp_path, startingVersion=0, maxFilesPerTrigger=1)) == [[0], [1], [2]]


def test_partition_values_and_projected_columns_are_read(tmp_path: Path) -> None:
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.int64())])
    builder = table(tmp_path, schema, partition_columns=["p"])
    data = pa.table({"id": pa.array([1], pa.int64()), "x": pa.array([2], pa.int64())})
    builder.append(data, partition_values={"p": "a"})
    builder.append(data, partition_values={"p": None})
    source = open_source(tmp_path, startingVersion=0, columns="p,id")
    assert source.schema.names == ["p", "id"]
    from spark_tests.behaviour.kernel.commands.streaming.streams import read

    end = source.latest_offset(source.initial_offset())
    found = read(source, source.initial_offset(), end)
    assert found == [{"p": "a", "id": 1}, {"p": None, "id": 1}]


def test_a_table_without_columns_cannot_be_streamed_yet(tmp_path: Path) -> None:
    import pyarrow as pa

    table(tmp_path, pa.schema([]))
    with pytest.raises(DeltaError) as caught:
        open_source(tmp_path)
    assert condition(caught) == "DELTA_SCHEMA_NOT_SET"


def test_an_offset_that_is_not_moved_stays_the_same_object_for_spark(tmp_path: Path) -> None:
    table(tmp_path).append(rows(1))
    source = open_source(tmp_path)
    end = end_of(source)
    assert source.latest_offset(end).to_json() == end.to_json()
    assert isinstance(source.offset(end.to_json()), StreamOffset)
