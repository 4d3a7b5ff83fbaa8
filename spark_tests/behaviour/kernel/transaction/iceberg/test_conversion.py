"""The metadata of Iceberg beside the log: pyiceberg reads the rows that a scan of the table has."""

from __future__ import annotations

import datetime
import os
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.iceberg import UNIVERSAL_FORMAT_CONVERSION_FAILED
from delta_ds.exceptions import DeltaError, InvalidOptionError, StorageError, UnsupportedOperationError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.compute_statistics import compute_statistics
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.format.schema.types import INTEGER, LONG, STRING, StructField, StructType
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.columns import add_columns, drop_columns, rename_column
from delta_ds.kernel.transaction.alter.create import REPLACE, create_table
from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties
from delta_ds.kernel.transaction.iceberg import conversion, snapshots
from delta_ds.kernel.transaction.iceberg.conversion import convert
from delta_ds.kernel.transaction.iceberg.snapshots import clean_up
from delta_ds.kernel.transaction.iceberg.storage_io import converted_versions
from spark_tests.behaviour.kernel.transaction.alter.tables import made, with_rows
from spark_tests.full_form import FULL, examples

V2 = {"delta.enableIcebergCompatV2": "true"}
UNIFORM = V2 | {"delta.universalFormat.enabledFormats": "iceberg"}
ALL_TYPES = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "byte": pa.array([1, None, -128], pa.int8()),
        "short": pa.array([1, None, -32768], pa.int16()),
        "long": pa.array([1 << 40, None, -(1 << 62)], pa.int64()),
        "float": pa.array([1.5, float("nan"), -0.0], pa.float32()),
        "double": pa.array([1e300, None, float("-inf")], pa.float64()),
        "dec": pa.array([Decimal("1.50"), None, Decimal("-99999999.99")], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(10) ** 30, None, Decimal(-7)], pa.decimal128(38, 0)),
        "text": ["a" * 40 + "\U0010ffff", None, ""],
        "bytes": pa.array([b"\x00\xff", None, b""], pa.binary()),
        "flag": [True, None, False],
        "day": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1900, 1, 1)]),
        "at": pa.array([1_700_000_000_123_456, None, -1], pa.timestamp("us", "UTC")),
        "local": pa.array([1_700_000_000_123_999, None, -1_001], pa.timestamp("us")),
        "s": [{"x": 1, "l": [1, None]}, None, {"x": None, "l": []}],
        "a": [[[1], None, []], None, []],
        # Without a null map, which pyiceberg reads as an empty one.
        "m": pa.array(
            [[("k", {"y": 1})], [("k", None)], []], pa.map_(pa.string(), pa.struct([("y", pa.int32())]))
        ),
    }
)


def iceberg(log: DeltaLog) -> StaticTable:
    return StaticTable.from_metadata(log.storage.url)


def rows_of(table: pa.Table) -> list[str]:
    """The rows in any order; NaN equals NaN, and -0.0 is not 0.0."""
    return sorted(map(repr, table.to_pylist()))


def same_rows(log: DeltaLog) -> bool:
    """Whether pyiceberg reads the newest version, and the rows of our scan."""
    snapshot = log.snapshot()
    table = iceberg(log)
    assert table.properties["delta-version"] == str(snapshot.version)
    ours = snapshot.scan().to_arrow()
    theirs = table.scan().to_arrow()
    assert theirs.column_names == ours.column_names
    assert rows_of(theirs) == rows_of(ours)
    return True


def made_of(path: Path, rows: pa.Table, **options: str) -> DeltaLog:
    log = DeltaLog(path)
    log.write(rows, options=UNIFORM | options)
    return log


def test_all_types_are_read_back(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES)
    assert same_rows(log)
    assert str(iceberg(log).schema().find_field("at").field_type) == "timestamptz"
    assert str(iceberg(log).schema().find_field("local").field_type) == "timestamp"


FILTERS = [
    ("id >= 3", [3]),
    ("at <= '1969-12-31T23:59:59.999999+00:00'", [3]),
    ("at >= '2023-11-14T22:13:20.123456+00:00'", [1]),
    ("local >= '2023-11-14T22:13:20.123999'", [1]),
    ("local <= '1969-12-31T23:59:59.998999'", [3]),
    ("day = '1900-01-01'", [3]),
    ("dec < 0", [3]),
    ("wide > 5", [1]),
    ("text >= 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", [1]),
    ("text = ''", [3]),
    ("byte = -128", [3]),
    ("long IS NULL", [2]),
    ("double < 0", [3]),
    ("float = 0", [3]),
    ("flag = false", [3]),
]


@pytest.fixture(scope="module")
def a_file_a_row(tmp_path_factory: pytest.TempPathFactory) -> DeltaLog:
    log = DeltaLog(tmp_path_factory.mktemp("rows"))
    for at in range(3):
        log.write(ALL_TYPES.slice(at, 1), options=UNIFORM if at == 0 else {})
    return log


@pytest.mark.parametrize(("condition", "ids"), FILTERS)
def test_bounds_hide_no_row(a_file_a_row: DeltaLog, condition: str, ids: list[int]) -> None:
    log = a_file_a_row
    assert iceberg(log).scan(row_filter=condition).to_arrow()["id"].to_pylist() == ids


def test_statistics_skip_files(a_file_a_row: DeltaLog) -> None:
    log = a_file_a_row
    for condition in (
        "id = 2",
        "day = '2024-02-29'",
        "at > '2000-01-01T00:00:00+00:00'",
        "text = ''",
        "dec < 0",
        "wide > 5",
    ):
        assert len(list(iceberg(log).scan(row_filter=condition).plan_files())) == 1


NEW_YEAR, HALF = datetime.date(2024, 1, 1), Decimal("1.5")
PARTITIONS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "my p": ["a/b %20", "ü#?=", "", None, "it's", "a/b %20"],
        "day": pa.array([NEW_YEAR, None, datetime.date(1, 1, 1), None, None, NEW_YEAR]),
        "at": pa.array([1, None, -1, 0, 1_700_000_000_123_456, 1], pa.timestamp("us", "UTC")),
        "dec": pa.array([HALF, None, Decimal("-3.25"), None, Decimal(0), HALF], pa.decimal128(9, 2)),
        "flag": [True, False, None, True, False, True],
    }
)  # fmt: skip


def test_partition_values_of_any_type_and_with_any_characters(tmp_path: Path) -> None:
    log = made_of(tmp_path, PARTITIONS, partitionBy="my p,day,at,dec,flag")
    log.write(PARTITIONS)
    delete(log, "day = '2024-01-01' AND id = 0")
    assert same_rows(log)
    table = iceberg(log)
    assert [f.name for f in table.spec().fields] == ["my p", "day", "at", "dec", "flag"]
    assert table.scan(row_filter="day = '0001-01-01'").to_arrow()["id"].to_pylist() == [2, 2]
    assert len(list(table.scan(row_filter="flag IS NULL").plan_files())) == 2


def test_columns_come_go_and_change_their_names_and_types(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id", "text", "s", "a"]))
    set_properties(log, {"delta.enableTypeWidening": "true"})
    rename_column(log, "text", "words")
    assert same_rows(log)
    drop_columns(log, ["a"])
    add_columns(log, StructType((StructField("a", STRING), StructField("z", LONG))))
    assert same_rows(log)
    alter_column(log, "id", data_type=LONG)
    log.write(
        pa.table({"id": [1 << 40], "words": ["x"], "s": [{"x": 2, "l": [5]}], "a": ["new"], "z": [1]}),
    )
    assert same_rows(log)
    first = iceberg(log).metadata.snapshots[0]
    assert iceberg(log).scan(snapshot_id=first.snapshot_id).to_arrow().column_names == [
        "id",
        "text",
        "s",
        "a",
    ]


def test_files_from_before_are_found_by_the_names_of_their_columns(tmp_path: Path) -> None:
    log = with_rows(tmp_path, files=2)
    set_properties(log, {"delta.columnMapping.mode": "name"})
    set_properties(log, UNIFORM)
    assert same_rows(log)
    rename_column(log, "v", "value")
    log.write(pa.table({"id": pa.array([9], pa.int64()), "value": pa.array([9], pa.int32())}))
    assert same_rows(log)
    drop_columns(log, ["value"])
    assert same_rows(log)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_row_ids_stay_beside_the_rows(tmp_path: Path, mode: str) -> None:
    tracked = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": mode}
    log = made_of(tmp_path, ALL_TYPES.select(["id", "text"]), **tracked)
    log.write(ALL_TYPES.select(["id", "text"]))
    before = row_ids(log)
    optimize(log)
    delete(log, "id = 1")
    assert len(row_ids(log)) == 4
    assert row_ids(log) < before
    assert same_rows(log)


def test_row_ids_in_columns_without_field_ids_as_delta_spark_writes_them(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id", "a"]), **{"delta.enableRowTracking": "true"})
    log.write(ALL_TYPES.select(["id", "a"]))
    optimize(log)
    (add,) = [a for table in live_adds(log.open_snapshot()) for a in add_bodies(table)]
    stored = pq.read_table(tmp_path / add["path"])
    names = log.open_snapshot().table_state.row_tracking_columns
    bare = [f.remove_metadata() if f.name in names else f for f in stored.schema]
    pq.write_table(stored.cast(pa.schema(bare)), tmp_path / "theirs.parquet")
    theirs = {**add, "path": "theirs.parquet", "size": (tmp_path / "theirs.parquet").stat().st_size}
    log.start_transaction().remove_live(data_change=False).add({**theirs, "dataChange": False}).commit(
        "OPTIMIZE"
    )
    assert same_rows(log)


def row_ids(log: DeltaLog) -> set[int]:
    scan = log.snapshot().scan(metadata_columns=["row_id"])
    rows = scan.to_arrow()
    return set(rows["_metadata"].combine_chunks().field("row_id").to_pylist())


def test_partition_columns_that_are_not_in_files_from_before(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(
        PARTITIONS.select(["id", "my p", "day"]),
        options={"partitionBy": "my p,day", "delta.columnMapping.mode": "name"},
    )
    set_properties(log, UNIFORM)
    assert same_rows(log)


def test_each_commit_is_a_snapshot_to_travel_to(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    log.write(ALL_TYPES.select(["id"]))
    delete(log, "id = 1")
    log.write(ALL_TYPES.select(["id"]).slice(0, 1), "overwrite")
    optimize(log)
    for snapshot in iceberg(log).metadata.snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary["delta-version"])
        then = log.snapshot(version)
        found = iceberg(log).scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert rows_of(found) == rows_of(then.scan().to_arrow())
        assert int(snapshot.summary["delta-timestamp"]) == then.timestamp
        assert int(snapshot.summary["total-records"]) == found.num_rows
        own = StaticTable.from_metadata(str(tmp_path / f"metadata/v{version}.metadata.json"))
        assert rows_of(own.scan().to_arrow()) == rows_of(found)


def test_a_commit_without_files_makes_no_snapshot(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    set_properties(log, {"my.own": "text"})
    assert len(iceberg(log).metadata.snapshots) == 1
    assert same_rows(log)


def test_an_append_writes_one_manifest_and_reads_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    before = {m.manifest_path for m in iceberg(log).current_snapshot().manifests(iceberg(log).io)}
    monkeypatch.setattr("delta_ds.kernel.transaction.iceberg.storage_io.ManifestFolder.entries", None)
    log.write(ALL_TYPES.select(["id"]))
    after = {m.manifest_path for m in iceberg(log).current_snapshot().manifests(iceberg(log).io)}
    assert before < after
    assert len(after - before) == 1


def test_the_number_of_manifests_and_of_files_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_MANIFESTS", 4)
    monkeypatch.setattr(conversion, "MAX_SNAPSHOTS", 5)
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    for _ in range(12):
        log.write(ALL_TYPES.select(["id"]))
        snapshot = iceberg(log).current_snapshot()
        assert snapshot is not None
        assert len(snapshot.manifests(iceberg(log).io)) <= 5
    assert len(iceberg(log).metadata.snapshots) == 5
    assert clean_up(log.storage) == 0  # nothing of the last hour goes
    left = len(list((tmp_path / "metadata").iterdir()))
    assert clean_up(log.storage, now_ms=1 << 60) > 15
    assert len(list((tmp_path / "metadata").iterdir())) < left / 2
    assert same_rows(log)
    for kept in iceberg(log).metadata.snapshots:
        assert iceberg(log).scan(snapshot_id=kept.snapshot_id).count() > 0
    assert converted_versions(log.storage) == [8, 9, 10, 11, 12]


def test_manifests_stay_where_another_writer_or_the_catalog_may_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_MANIFESTS", 2)
    monkeypatch.setattr(conversion, "MAX_SNAPSHOTS", 2)
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    for _ in range(6):
        log.write(ALL_TYPES.select(["id"]))
    foreign = tmp_path / "metadata" / "00000-5c2e7ad0-8d0b-4f0e-a6a2-3f6b8f0e7d11.metadata.json"
    foreign.write_text("{}")
    assert clean_up(log.storage, now_ms=1 << 60) == 0
    foreign.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(type(log.storage), "allows", lambda *_: False)
        assert clean_up(log.storage, now_ms=1 << 60) == 0
    assert clean_up(log.storage, now_ms=1 << 60) > 0
    assert same_rows(log)


def test_only_what_is_called_as_manifests_and_descriptions_are_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conversion, "MAX_SNAPSHOTS", 2)
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    for _ in range(3):
        log.write(ALL_TYPES.select(["id"]))
    for name in ("people.avro", "notes.metadata.txt"):
        (tmp_path / "metadata" / name).write_bytes(b"mine")
    assert clean_up(log.storage, now_ms=1 << 60) > 0
    assert (tmp_path / "metadata" / "people.avro").exists()
    assert "deletion_refused" in caplog.text


def test_a_folder_of_metadata_that_is_a_link_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be that of another table, whose names are alike."""
    monkeypatch.setattr(conversion, "MAX_SNAPSHOTS", 2)
    log = made_of(tmp_path / "table", ALL_TYPES.select(["id"]))
    for _ in range(3):
        log.write(ALL_TYPES.select(["id"]))
    home, metadata = tmp_path / "home", tmp_path / "table" / "metadata"
    metadata.rename(home)
    metadata.symlink_to(home)
    before = {file.name: file.read_bytes() for file in home.iterdir()}
    assert clean_up(log.storage, now_ms=1 << 60) == 0
    log.write(ALL_TYPES.select(["id"]))
    with pytest.raises(StorageError) as caught:
        generate(log, "iceberg")
    assert caught.value.condition == "DELTA_STORAGE_ERROR.NOT_IN_TABLE"
    assert {file.name: file.read_bytes() for file in home.iterdir()} == before
    assert "deletion_refused" in caplog.text and "post_commit_failed" in caplog.text


def test_a_failure_is_one_line_in_the_log_and_the_next_commit_makes_up_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))

    def fails(*_: Any) -> bool:
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(conversion, "convert", fails)
        log.write(ALL_TYPES.select(["id"]))
        delete(log, "id = 2")
    assert [r.message for r in caplog.records if "iceberg" in r.getMessage()]
    assert len([r for r in caplog.records if "iceberg" in r.getMessage()]) == 2
    assert iceberg(log).properties["delta-version"] == "0"
    log.write(ALL_TYPES.select(["id"]))
    assert same_rows(log)
    assert len(iceberg(log).metadata.snapshots) == 2


def test_generate_brings_it_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    with monkeypatch.context() as patched:
        patched.setattr("delta_ds.kernel.transaction.post_commit._convert", lambda *_: False)
        log.write(ALL_TYPES.select(["id"]))
    assert generate(log, "Iceberg") == 1
    assert same_rows(log)
    assert generate(log, "iceberg") == 0
    unset_properties(log, ["delta.universalFormat.enabledFormats"])
    with pytest.raises(UnsupportedOperationError, match="enabledFormats"):
        generate(log, "iceberg")


def test_what_is_far_behind_is_described_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_ds.kernel.transaction.iceberg.snapshots.MAX_COMMITS", 1)
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    with monkeypatch.context() as patched:
        patched.setattr("delta_ds.kernel.transaction.post_commit._convert", lambda *_: False)
        for _ in range(3):
            log.write(ALL_TYPES.select(["id"]))
    log.write(ALL_TYPES.select(["id"]), "overwrite")
    assert same_rows(log)
    summary = iceberg(log).current_snapshot().summary
    assert summary["total-records"] == "3"


def test_two_that_convert_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    errors: list[BaseException] = []

    def load() -> None:
        try:
            own = DeltaLog(tmp_path)
            for _ in range(4):
                own.write(ALL_TYPES.select(["id"]))
                convert(own.storage, own.open_snapshot().table_state, own.open_snapshot().timestamp)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert same_rows(log)
    assert log.snapshot().version == 8
    for version in converted_versions(log.storage):
        own = StaticTable.from_metadata(str(tmp_path / f"metadata/v{version}.metadata.json"))
        assert own.scan().count() == 3 * (version + 1)


def test_who_comes_second_takes_its_files_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    with monkeypatch.context() as patched:
        patched.setattr("delta_ds.kernel.transaction.post_commit._convert", lambda *_: False)
        log.write(ALL_TYPES.select(["id"]))
    state, at = log.open_snapshot().table_state, log.open_snapshot().timestamp
    second = conversion._Conversion(log.storage, state, at)
    base = second.base()
    assert convert(log.storage, state, at)
    there = set((tmp_path / "metadata").iterdir())
    assert second.write(base) is False
    assert set((tmp_path / "metadata").iterdir()) == there
    assert convert(log.storage, log.open_snapshot(0).table_state, 0) is False  # older than what is there


def test_the_hint_names_the_newest_version(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    log.write(ALL_TYPES.select(["id"]))
    (tmp_path / "metadata/version-hint.text").write_text("0")
    assert generate(log, "iceberg") == 0
    assert (tmp_path / "metadata/version-hint.text").read_text() == "1"


def test_a_table_that_was_moved_is_described_anew(tmp_path: Path) -> None:
    log = made_of(tmp_path / "old", ALL_TYPES.select(["id"]))
    os.rename(tmp_path / "old", tmp_path / "new #1?")
    log = DeltaLog(tmp_path / "new #1?")
    with pytest.raises(UnsupportedOperationError, match="delete the folder metadata") as error:
        generate(log, "iceberg")
    assert error.value.condition == UNIVERSAL_FORMAT_CONVERSION_FAILED.name
    log.write(ALL_TYPES.select(["id"]))
    assert same_rows(log)


def test_clones_restores_replacements_and_statistics(tmp_path: Path) -> None:
    source = made_of(tmp_path / "source", ALL_TYPES.select(["id", "a"]))
    source.write(ALL_TYPES.select(["id", "a"]))
    clone = DeltaLog(tmp_path / "clone")
    shallow_clone(source, clone)
    assert same_rows(clone)
    delete(clone, "id = 1")
    restore(clone, version=0)
    assert same_rows(clone)
    compute_statistics(clone)
    assert same_rows(clone)
    create_table(clone, StructType((StructField("k", INTEGER),)), properties=UNIFORM, mode=REPLACE)
    assert same_rows(clone)
    clone.write(pa.table({"k": pa.array([1], pa.int32())}))
    assert same_rows(clone)


def test_vacuum_leaves_it(tmp_path: Path) -> None:
    log = made_of(tmp_path, ALL_TYPES.select(["id"]))
    delete(log, "id = 1")
    vacuum(log, 0, retention_check=False)
    assert same_rows(log)


def test_it_needs_iceberg_compatibility(tmp_path: Path) -> None:
    only = {"delta.universalFormat.enabledFormats": "iceberg"}
    with pytest.raises(UnsupportedOperationError) as error:
        made(tmp_path / "a", properties=only)
    assert error.value.condition == "DELTA_UNIVERSAL_FORMAT_VIOLATION.ICEBERG_COMPAT_REQUIRED"
    with pytest.raises(DeltaError):
        set_properties(made(tmp_path / "b"), only)
    for text in ("orc", "iceberg,iceberg", "hudi"):
        with pytest.raises(InvalidOptionError):
            made(tmp_path / "c", properties=V2 | {"delta.universalFormat.enabledFormats": text})
    log = made(tmp_path / "d", properties=UNIFORM)
    set_properties(log, {"delta.enableIcebergCompatV2": "false"})
    assert "delta.universalFormat.enabledFormats" not in log.snapshot().properties


def test_without_pyiceberg_the_property_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyiceberg.manifest", None)
    with pytest.raises(UnsupportedOperationError, match=r"pip install 'delta-ds\[iceberg\]'") as error:
        made(tmp_path, properties=UNIFORM)
    assert error.value.condition == "DELTA_MISSING_ICEBERG_CLASS"
    assert not list(tmp_path.iterdir())


def test_a_file_with_a_deletion_vector_is_not_described(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(
        ALL_TYPES.select(["id"]),
        options={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )
    delete(log, "id = 1")
    with pytest.raises(UnsupportedOperationError, match="deletion vector"):
        convert(log.storage, log.open_snapshot().table_state, 0)
    assert not (tmp_path / "metadata").exists() or not list((tmp_path / "metadata").iterdir())


# --- a law


ROWS = st.lists(
    st.tuples(
        st.integers(0, 9), st.sampled_from(["a", "b c", "%41", None]), st.lists(st.integers(0, 3), max_size=2)
    ),
    min_size=1,
    max_size=4,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ROWS),
        st.tuples(st.just("overwrite"), ROWS),
        st.tuples(st.just("replace"), ROWS),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("optimize"), st.none()),
        st.tuples(st.just("restore"), st.integers(0, 3)),
        st.tuples(st.just("property"), st.none()),
        st.tuples(st.just("skip"), ROWS),
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("l", pa.list_(pa.int64()))])


@settings(max_examples=200 if FULL else examples(6), deadline=None)
@given(partitioned=st.booleans(), first=ROWS, steps=STEPS)
def test_rows_of_random_programs_are_those_of_our_scan(
    tmp_path_factory: pytest.TempPathFactory,
    partitioned: bool,
    first: list[Any],
    steps: list[tuple[str, Any]],
) -> None:
    log = DeltaLog(tmp_path_factory.mktemp("law"))
    log.write(_table(first), options=UNIFORM | ({"partitionBy": "p"} if partitioned else {}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(snapshots, "MAX_MANIFESTS", 3)
        for step, what in steps:
            _run(log, step, what)
            if step != "skip":
                assert same_rows(log)
    generate(log, "iceberg")
    assert same_rows(log)
    for snapshot in iceberg(log).metadata.snapshots:
        assert snapshot.summary is not None
        then = log.snapshot(int(snapshot.summary["delta-version"])).scan().to_arrow()
        assert rows_of(iceberg(log).scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == rows_of(then)


def _table(rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def _run(log: DeltaLog, step: str, what: Any) -> None:
    if step in ("append", "overwrite"):
        log.write(_table(what), step)
    elif step == "replace":
        rows = _table([(1, p, x) for _, p, x in what])
        log.write(rows, "overwrite", {"replaceWhere": "id = 1"})
    elif step == "delete":
        delete(log, f"id = {what}")
    elif step == "optimize":
        optimize(log)
    elif step == "restore":
        restore(log, version=min(what, log.snapshot().version))
    elif step == "property":
        set_properties(log, {"n": str(log.snapshot().version)})
    else:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("delta_ds.kernel.transaction.post_commit._convert", lambda *_: False)
            log.write(_table(what))
