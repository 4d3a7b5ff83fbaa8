"""Streams of delta-spark and of this package on the same tables: both read what the other's sink writes, and alike."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import delta_ds
from delta_ds import DeltaLog
from delta_ds.testing import TableBuilder
from spark_tests.engines.interop.delta_spark import DeltaSpark
from spark_tests.engines.interop.streams import (
    OURS,
    THEIRS,
    Following,
    Seen,
    Step,
    alike,
    follow,
    forget_last_commit,
    perform,
    read,
    streaming_updates,
    transactions,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

# What a table may have that its readers must know of.
EVERYTHING = ", ".join(
    f"'delta.{name}' = '{text}'"
    for name, text in (
        ("enableDeletionVectors", "true"),
        ("enableChangeDataFeed", "true"),
        ("columnMapping.mode", "name"),
    )
)
PLAIN = "'delta.enableDeletionVectors' = 'false'"
UPDATE = "UPDATE {t} SET name = 'u' WHERE id = 2"
MERGE = (
    "MERGE INTO {t} t USING (SELECT explode(array(1L, 6L, 99L)) AS id) s ON t.id = s.id "
    "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm' "
    "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"
)
# Commits of a history lie a minute apart.
MINUTES = 1_700_000_040


@pytest.fixture(scope="module")
def session(delta_spark: DeltaSpark) -> SparkSession:
    """A session of delta-spark that has the data source, too; others do not get it."""
    found = delta_spark.session.newSession()
    delta_ds.register(found)
    # Streams that wait take the processor from those that work.
    found.conf.set("spark.sql.streaming.pollingDelay", "500ms")
    found.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    return found


def create(properties: str, columns: str = "id BIGINT, name STRING", partitioned: str = "") -> str:
    by = f" PARTITIONED BY ({partitioned})" if partitioned else ""
    return f"CREATE TABLE {{t}} ({columns}) USING delta{by} TBLPROPERTIES ({properties})"


def insert(first: int, end: int, more: str = "") -> str:
    """A commit with one file."""
    return f"INSERT INTO {{t}} SELECT id, concat('n', id) AS name{more} FROM range({first}, {end}, 1, 1)"


# --- the sink of this package


def feed(path: Path, *groups: list[int]) -> TableBuilder:
    """A table to write from, with a commit a group of ids."""
    builder = TableBuilder(path)
    builder.create(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for group in groups:
        builder.append(named(group))
    return builder


def named(group: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(group, pa.int64()), "name": [f"n{number}" for number in group]})


def test_delta_spark_streams_what_the_sink_writes(session: SparkSession, tmp_path: Path) -> None:
    source, target = feed(tmp_path / "source", [1, 2, 3], [4, 5]), tmp_path / "target"
    perform(session, target, [create(EVERYTHING, "id BIGINT, name STRING, odd BIGINT", "odd")])
    select = ["id", "name", "id % 2 AS odd"]
    first = write(session, source.path, OURS, target, select=select)
    # Another writer comes in between, and leaves deletion vectors.
    perform(session, target, ["DELETE FROM {t} WHERE id = 1", insert(100, 101, ", 0 AS odd")])
    source.append(named([6, 7]))
    query = write(session, source.path, OURS, target, select=select)

    assert query.id == first.id
    assert transactions(session, target) == {query.id: 2}
    expected = [{"outputMode": "Append", "queryId": query.id, "epochId": str(n)} for n in range(3)]
    assert streaming_updates(session, target) == expected
    rows = [(n, f"n{n}", n % 2) for n in (2, 3, 4, 5, 6, 7, 100)]
    changes = [(n, f"n{n}", n % 2, "insert", v, "a moment") for v, n in _versions()]
    changes.append((1, "n1", 1, "delete", 3, "a moment"))
    table = session.read.format("delta").load(str(target))
    assert sorted(map(tuple, table.collect())) == rows
    found = read(session, target, tmp_path / "feed", readChangeFeed="true", startingVersion=0)
    assert found[THEIRS].rows == sorted(changes, key=str)
    assert found[OURS] == found[THEIRS]
    found = read(session, target, tmp_path / "rows")
    assert found[THEIRS].rows == sorted(rows, key=str)
    assert found[OURS] == found[THEIRS]
    found = read(session, target, tmp_path / "adds", startingVersion=0, skipChangeCommits="true")
    assert found[THEIRS].rows == sorted([(1, "n1", 1), *rows], key=str)
    assert found[OURS] == found[THEIRS]


def _versions() -> list[tuple[int, int]]:
    return [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (4, 100), (5, 6), (5, 7)]


def test_delta_spark_streams_what_mode_complete_writes(session: SparkSession, tmp_path: Path) -> None:
    source, target = feed(tmp_path / "source", [1, 2, 3]), tmp_path / "target"
    how: dict[str, Any] = {
        "select": ["id % 2 AS odd"], "counts": "odd", "mode": "complete", "delta.enableChangeDataFeed": "true",
    }  # fmt: skip
    write(session, source.path, OURS, target, **how)
    source.append(named([4, 6]))
    query = write(session, source.path, OURS, target, **how)
    expected = [{"outputMode": "Complete", "queryId": query.id, "epochId": str(n)} for n in range(2)]
    assert streaming_updates(session, target) == expected
    before, after = [(0, 1), (1, 2)], [(0, 3), (1, 2)]

    def seen(**options: Any) -> Seen:
        found = read(session, target, tmp_path / str(options), startingVersion=0, **options)
        assert alike(found), options
        return found[THEIRS]

    assert seen(maxFilesPerTrigger=1).error == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    assert seen(skipChangeCommits="true").rows == before
    assert seen(ignoreChanges="true").rows == sorted(before + after, key=str)
    changes = [(*row, kind, v, "a moment") for rows, kind, v in _replaced(before, after) for row in rows]
    assert seen(readChangeFeed="true").rows == sorted(changes, key=str)


def _replaced(
    before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> list[tuple[list[tuple[int, int]], str, int]]:
    return [(before, "insert", 0), (before, "delete", 1), (after, "insert", 1)]


def test_query_changes_its_sink_and_writes_no_batch_twice(session: SparkSession, tmp_path: Path) -> None:
    source, target = feed(tmp_path / "source", [1, 2]), tmp_path / "target"
    write(session, source.path, OURS, target, partitionBy="name")
    for number, (writer, other) in enumerate([(OURS, THEIRS), (THEIRS, OURS), (OURS, THEIRS)]):
        forget_last_commit(target)
        # The other sink finds that the batch is there, and goes on with the next one.
        write(session, source.path, other, target)
        assert DeltaLog(target).snapshot().version == number
        source.append(named([10 + number]))
        query = write(session, source.path, other, target)
        assert transactions(session, target) == {query.id: number + 1}
        assert writer != other
    found = read(session, target, tmp_path / "rows", startingVersion=0)
    assert found[THEIRS].rows == sorted([(n, f"n{n}") for n in (1, 2, 10, 11, 12)], key=str)
    assert found[OURS] == found[THEIRS]


# --- the source of this package


@pytest.mark.parametrize("feed_of_changes", [False, True])
def test_the_source_follows_what_delta_spark_writes(
    session: SparkSession, tmp_path: Path, feed_of_changes: bool
) -> None:
    source, target = feed(tmp_path / "source", [1, 2, 3], [4, 5], [6, 7]), tmp_path / "target"
    if feed_of_changes:
        perform(session, target, [create(EVERYTHING, partitioned="name")])

    def sink(session: SparkSession, path: Path) -> None:
        write(session, source.path, THEIRS, path, partitionBy="name")

    def more(session: SparkSession, path: Path) -> None:
        source.append(named([20]))
        sink(session, path)

    perform(session, target, [sink])
    changes: list[Step] = [UPDATE, "DELETE FROM {t} WHERE id IN (3, 4)", MERGE] if feed_of_changes else []
    options = (
        {"readChangeFeed": "true", "startingVersion": 1} if feed_of_changes else {"maxFilesPerTrigger": 2}
    )
    what = Following([more, *changes, "OPTIMIZE {t}"], [more], options)
    both = follow(session, target, tmp_path / "checkpoint", what)
    assert all(map(alike, both)), both
    running, restarted = (found[OURS] for found in both)
    assert running.error is restarted.error is None
    if feed_of_changes:
        kinds = [row[2] for row in running.rows]
        assert {k: kinds.count(k) for k in set(kinds)} == {
            "insert": 9, "delete": 3, "update_preimage": 2, "update_postimage": 2,
        }  # fmt: skip
        assert [row[:3] for row in restarted.rows] == [(20, "n20", "insert")]
    else:
        assert [len(batch) for batch in running.batches] == [2, 2, 2, 1, 1]
        assert [row[0] for row in restarted.rows] == [20]


# --- both sources on one table


def history(session: SparkSession, path: Path, properties: str) -> Path:
    """A table with commits of most kinds, a minute apart; returns its path."""
    steps: list[Step] = [
        create(properties),
        insert(1, 4),
        insert(4, 6),
        insert(6, 8),
        "DELETE FROM {t} WHERE id IN (4, 5)",
        UPDATE,
        insert(20, 21),
        "OPTIMIZE {t}",
        MERGE,
        insert(21, 22),
    ]
    perform(session, path, steps)
    for version in range(len(steps)):
        moment = MINUTES + 60 * version
        os.utime(path / "_delta_log" / f"{version:020d}.json", (moment, moment))
    _forget(session)
    return path


def _forget(session: SparkSession) -> None:
    """Have delta-spark look at its tables anew."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


# Options, and the error that both sources come to.
READ: list[tuple[dict[str, Any], str | None]] = [
    ({"maxFilesPerTrigger": 1}, None),
    ({"startingVersion": 0, "maxFilesPerTrigger": 1}, "DELTA_SOURCE_IGNORE_DELETE"),
    ({"startingVersion": 2, "ignoreDeletes": "true"}, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
    ({"startingVersion": 1, "ignoreChanges": "true", "maxFilesPerTrigger": 2}, None),
    ({"startingVersion": 1, "skipChangeCommits": "true", "maxBytesPerTrigger": "1b"}, None),
    ({"startingTimestamp": "2023-11-14 22:20:00", "ignoreChanges": "true", "maxFilesPerTrigger": 1}, None),
    ({"startingTimestamp": "2023-11-14 22:19:01", "skipChangeCommits": "true"}, None),
    ({"startingTimestamp": "2001-01-01", "skipChangeCommits": "true"}, None),
    ({"startingVersion": "latest"}, None),
]  # fmt: skip
READ_CHANGES: list[tuple[dict[str, Any], str | None]] = [
    ({"readChangeFeed": "true"}, None),
    ({"readChangeFeed": "true", "startingVersion": 0, "maxFilesPerTrigger": 1}, None),
    ({"readChangeFeed": "true", "startingTimestamp": "2023-11-14 22:19:01", "maxBytesPerTrigger": "1b"}, None),
]  # fmt: skip
# What comes to no batch at all.
REFUSED: list[tuple[dict[str, Any], str | None]] = [
    ({"startingTimestamp": "2090-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ({"startingVersion": 10}, "DELTA_VERSION_NOT_FOUND"),
    ({"startingVersion": -1}, "DELTA_ILLEGAL_OPTION"),
    ({"startingVersion": "first"}, "DELTA_ILLEGAL_OPTION"),
    ({"startingTimestamp": "then"}, "DELTA_TIMESTAMP_INVALID"),
    ({"startingVersion": 1, "startingTimestamp": "2023-11-14"}, "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"),
    ({"maxFilesPerTrigger": 0}, "DELTA_ILLEGAL_OPTION"),
    ({"maxBytesPerTrigger": "much"}, "DELTA_ILLEGAL_OPTION"),
    ({"ignoreDeletes": "perhaps"}, "DELTA_ILLEGAL_OPTION"),
    ({"excludeRegex": "("}, "DELTA_REGEX_OPT_SYNTAX_ERROR"),
    ({"versionAsOf": 1}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
    ({"readChangeFeed": "true", "startingVersion": 0}, "DELTA_MISSING_CHANGE_DATA"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "cases"),
    [(PLAIN, READ + REFUSED), (EVERYTHING, [*READ[:1], *READ[3:5], *READ_CHANGES])],
    ids=["plain", "everything"],
)
def test_both_sources_give_the_same_batches(
    session: SparkSession, tmp_path: Path, properties: str, cases: list[tuple[dict[str, Any], str | None]]
) -> None:
    table = history(session, tmp_path / "table", properties)
    wrong = []
    for number, (how, error) in enumerate(cases):
        found = read(session, table, tmp_path / f"c{number}", **how)
        if not alike(found) or found[OURS].error != error:
            wrong.append(f"{how}, {error}: {found}")
    assert not wrong, "\n".join(wrong)


def overwritten(query: str, **options: str) -> Step:
    """An overwrite by delta-spark with the rows of a query."""

    def write_rows(session: SparkSession, path: Path) -> None:
        session.sql(query).write.format("delta").mode("overwrite").options(**options).save(str(path))

    return write_rows


def recreated(session: SparkSession, path: Path) -> None:
    shutil.rmtree(path)
    feed(path, [10], [11], [12], [13], [14])
    _forget(session)


def lose_files(session: SparkSession, path: Path) -> None:
    for file in path.glob("*.parquet"):
        file.unlink()


def lose_commits(session: SparkSession, path: Path) -> None:
    """A checkpoint, and nothing before it any more: as log retention does."""
    DeltaSpark(session).checkpoint(path)
    log = path / "_delta_log"
    checkpoint = max(log.glob("*.checkpoint*.parquet")).name.partition(".")[0]
    for file in log.glob("*.json"):
        if file.name < checkpoint:
            file.unlink()
    _forget(session)


CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
REWRITTEN = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
UNREADABLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
FEED, MAPPED = "'delta.enableChangeDataFeed' = 'true'", "'delta.columnMapping.mode' = 'name'"
WIDENING = "'delta.enableTypeWidening' = 'true'"
MADE, STRICT, SMALL = "id BIGINT, name STRING", "id BIGINT NOT NULL, name STRING", "id INT, name STRING"
ALTER = "ALTER TABLE {t} "
WIDER = [ALTER + "ALTER COLUMN id TYPE BIGINT", "INSERT INTO {t} VALUES (5000000000, 'big')"]
NULLABLE = [ALTER + "ALTER COLUMN id DROP NOT NULL", "INSERT INTO {t} VALUES (NULL, 'none')"]
CHANGES_NO_ROW: list[Step] = [
    ALTER + "SET TBLPROPERTIES ('mine' = '1', 'delta.enableDeletionVectors' = 'true')",
    ALTER + "ALTER COLUMN name COMMENT 'of it'",
    "OPTIMIZE {t}",
    overwritten("SELECT id, concat('n', id) AS name FROM range(1, 6, 1, 1)", dataChange="false"),
    insert(20, 21),
]
NO_FEED = ALTER + "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"

# Properties and columns of a table, what happens to it, and the errors before a restart and after it.
EVENTS: dict[str, tuple[str, str, Following, list[str | None]]] = {
    "delete": (PLAIN, MADE, Following(["DELETE FROM {t} WHERE id > 3"]), ["DELTA_SOURCE_IGNORE_DELETE"]),
    "deletion vector": (EVERYTHING, MADE, Following(["DELETE FROM {t} WHERE id = 2"], ()), [REWRITTEN, REWRITTEN]),
    "overwrite": (PLAIN, MADE, Following([overwritten("SELECT 50L AS id, 'x' AS name")]), [REWRITTEN]),
    "overwritten schema": (
        PLAIN, MADE, Following([overwritten("SELECT 'y' AS other", overwriteSchema="true")], ()), [CHANGED, CHANGED],
    ),
    "column added": (
        PLAIN, MADE, Following([ALTER + "ADD COLUMN extra INT", insert(20, 21, ", 5 AS extra")], ()), [CHANGED, None],
    ),
    "column added after a start": (
        PLAIN, MADE, Following([ALTER + "ADD COLUMN extra INT"], options={"startingVersion": 0}),
        ["DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"],
    ),
    "column renamed": (
        MAPPED, MADE, Following([ALTER + "RENAME COLUMN name TO title"], ()), [UNREADABLE, UNREADABLE],
    ),
    "column dropped": (MAPPED, MADE, Following([ALTER + "DROP COLUMN name"]), [UNREADABLE]),
    "type widened": (WIDENING, SMALL, Following(WIDER, ()), [CHANGED, None]),
    "column nullable": (PLAIN, STRICT, Following(NULLABLE, ()), [CHANGED, None]),
    "no row changed": (PLAIN, MADE, Following(CHANGES_NO_ROW), [None]),
    "no feed any more": (
        FEED, MADE, Following([NO_FEED], options={"readChangeFeed": "true", "startingVersion": 0}),
        ["DELTA_MISSING_CHANGE_DATA"],
    ),
    "another table": (
        PLAIN, MADE, Following((), [recreated]), [None, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"],
    ),
    "log cleaned": (
        PLAIN, MADE, Following([insert(20, 21)], [insert(21, 22), insert(22, 23), lose_commits]),
        [None, "DELTA_MISSING_FILES_UNEXPECTED_VERSION"],
    ),
    "file vacuumed": (
        PLAIN, MADE, Following((), [insert(20, 21), lose_files]), [None, "FAILED_READ_FILE.FILE_NOT_EXIST"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_both_sources_meet_a_change_alike(session: SparkSession, tmp_path: Path, name: str) -> None:
    properties, columns, what, errors = EVENTS[name]
    perform(session, tmp_path / "table", [create(properties, columns), insert(1, 4), insert(4, 6)])
    both = follow(session, tmp_path / "table", tmp_path / "checkpoint", what)
    assert all(map(alike, both)), both
    assert [found[OURS].error for found in both] == errors
