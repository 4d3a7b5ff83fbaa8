"""OPTIMIZE without Spark: what is rewritten, what the log says, and that rows stay what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    ConcurrentDeleteReadException,
    DataFileError,
    DeltaError,
    InvalidOptionError,
    PredicateError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_ds.kernel.commands.optimize import clustering_sort, command
from delta_ds.kernel.commands.optimize.command import optimize, rewrite_all
from delta_ds.kernel.commands.optimize.commit import commit_optimize
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import FULL, PURGE, ZORDER, OptimizeRequest, settings_of
from delta_ds.kernel.format.options.settings import CODEC
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.behaviour.kernel.commands.whole_tables import bodies, ids, rows, with_vector

TRACKED = {"delta.enableRowTracking": "true"}


def _appended(path: Path, *parts: pa.Table, **options: Any) -> DeltaLog:
    log = DeltaLog(path)
    for part in parts:
        log.write(part, options=options)
    return log


def _by_country(path: Path, **options: Any) -> DeltaLog:
    parts = [pa.table({"id": [i, i + 1, i + 2], "land": ["de", "fr", None]}) for i in (1, 11, 21)]
    return _appended(path, *parts, partitionBy="land", **options)


def _data_files(path: Path) -> int:
    return sum(1 for _ in path.rglob("*.parquet") if "_delta_log" not in str(_))


# ---------------------------------------------------------------- compaction


def test_small_files_become_one_a_partition_and_rows_stay(tmp_path: Path) -> None:
    log = _by_country(tmp_path)
    before = rows(log)
    done = optimize(log)
    assert rows(log) == before
    assert (done.version, done.metrics["numBins"], done.metrics["partitionsOptimized"]) == (3, 3, 3)
    adds, removes = bodies(log, 3, "add"), bodies(log, 3, "remove")
    assert sorted(add["partitionValues"]["land"] or "" for add in adds) == ["", "de", "fr"]
    assert {body["dataChange"] for body in (*adds, *removes)} == {False}
    assert len(removes) == done.metrics["numFilesRemoved"] == 9
    (info,) = bodies(log, 3, "commitInfo")
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"] == {
        "predicate": "[]",
        "zOrderBy": "[]",
        "clusterBy": "[]",
        "auto": False,
    }
    assert info["isolationLevel"] == "SnapshotIsolation"
    assert info["operationMetrics"]["numRemovedFiles"] == "9"


def test_nothing_to_do_makes_no_commit_but_an_answer(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1))
    done = optimize(log)
    assert done.version is None
    assert log.snapshot().version == 0
    assert (done.metrics["totalConsideredFiles"], done.metrics["totalFilesSkipped"]) == (1, 1)
    assert done.metrics["filesAdded"] == {
        "min": None,
        "max": None,
        "avg": 0.0,
        "totalFiles": 0,
        "totalSize": 0,
    }


@pytest.mark.parametrize(
    ("predicate", "files"), [("land = 'de'", 3), ("land is null", 3), ("land IN ('x')", 0)]
)
def test_a_predicate_chooses_partitions_by_typed_values(tmp_path: Path, predicate: str, files: int) -> None:
    log = _by_country(tmp_path)
    done = optimize(log, OptimizeRequest(where=(predicate,)))
    assert done.metrics["numFilesRemoved"] == files
    assert done.metrics["totalConsideredFiles"] == files


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        ("id = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("nope = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("land = = 1", "DELTA_FAILED_RECOGNIZE_PREDICATE"),
        ("soundex(land) = 'x'", "DELTA_INVALID_PREDICATE"),
    ],
)
def test_a_predicate_that_partitions_cannot_decide_is_refused(
    tmp_path: Path, predicate: str, condition: str
) -> None:
    log = _by_country(tmp_path)
    with pytest.raises(PredicateError) as error:
        optimize(log, OptimizeRequest(where=(predicate,)))
    assert error.value.condition == condition
    assert log.snapshot().version == 2


@pytest.mark.parametrize(
    ("other_case", "own_case", "condition"),
    [
        ({"where": ("LAND = 'de'",)}, {"where": ("land = 'de'",)}, "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        (
            {"kind": ZORDER, "columns": ("ID",)},
            {"kind": ZORDER, "columns": ("id",)},
            "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
        ),
    ],
    ids=["WHERE", "ZORDER BY"],
)
def test_columns_are_named_in_their_own_case_where_the_session_asks_for_it(
    tmp_path: Path, other_case: dict[str, Any], own_case: dict[str, Any], condition: str
) -> None:
    log = _by_country(tmp_path / "exact")
    with pytest.raises(DeltaError) as error:
        optimize(log, OptimizeRequest(**other_case, exact_names=True))
    assert error.value.condition == condition
    assert optimize(log, OptimizeRequest(**own_case, exact_names=True)).version == 3
    assert optimize(_by_country(tmp_path / "any"), OptimizeRequest(**other_case)).version == 3


def test_bins_are_filled_up_to_the_file_size_and_single_files_left_alone(tmp_path: Path) -> None:
    log = _appended(tmp_path, *(ids(*range(n, n + 50)) for n in range(0, 250, 50)))
    size = max(log.open_snapshot().live_files().table["size"].to_pylist())
    request = OptimizeRequest().with_settings(max_file_size=2 * size + 10)
    done = optimize(log, request)
    assert (done.metrics["numBins"], done.metrics["numFilesRemoved"]) == (2, 4)
    assert rows(log) == list(range(250))


def test_the_tables_own_file_size_goes_first(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1), ids(2), **{"delta.targetFileSize": "1"})
    assert optimize(log).version is None


def test_large_files_are_no_candidates_unless_many_rows_are_deleted(tmp_path: Path) -> None:
    table, log = with_vector(tmp_path)  # a third of the rows is deleted
    table.append(ids(7))
    request = OptimizeRequest().with_settings(min_file_size=0)
    assert optimize(log, request.with_settings(max_deleted_rows_ratio=0.5)).version is None
    table.append(ids(8))
    done = optimize(log, OptimizeRequest())
    assert done.metrics["deletionVectorStats"] == {
        "numDeletionVectorsRemoved": 1, "numDeletionVectorRowsRemoved": 1,
    }  # fmt: skip
    assert rows(log) == [2, 3, 7, 8]
    assert log.open_snapshot().live_files().table["deletionVector"].null_count == 1


def test_append_only_tables_may_be_optimized(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1), ids(2), **{"delta.appendOnly": "true"})
    assert optimize(log).version == 2


def test_row_ids_and_commit_versions_are_kept(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1, 2), ids(3), **TRACKED)

    def tracked() -> list[Any]:
        scan = log.snapshot().scan(metadata_columns=["row_id", "row_commit_version"])
        return sorted((r["id"], *r["_metadata"].values()) for r in scan.to_arrow().to_pylist())

    before = tracked()
    done = optimize(log)
    assert tracked() == before
    assert bodies(log, done.version or 0, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
    optimize(log, OptimizeRequest(ZORDER, columns=("id",)))
    assert tracked() == before


def test_physical_names_and_statistics_stay_with_column_mapping(tmp_path: Path) -> None:
    parts = [pa.table({"id": [i], "land": ["de"]}) for i in (1, 2)]
    log = _appended(tmp_path, *parts, partitionBy="land", **{"delta.columnMapping.mode": "name"})
    done = optimize(log, OptimizeRequest(ZORDER, where=("land = 'de'",), columns=("ID",)))
    assert rows(log) == [1, 2]
    assert log.snapshot().scan("id = 5").num_files == 0
    assert bodies(log, done.version or 0, "commitInfo")[0]["operationParameters"]["zOrderBy"] == '["ID"]'


# ---------------------------------------------------------------- purge


def test_purge_rewrites_what_has_deleted_rows_and_nothing_else(tmp_path: Path) -> None:
    table, log = with_vector(tmp_path)
    table.append(ids(9))
    done = optimize(log, OptimizeRequest(PURGE))
    assert (done.metrics["numFilesRemoved"], done.metrics["numFilesAdded"]) == (1, 1)
    (info,) = bodies(log, done.version or 0, "commitInfo")
    assert (info["operation"], info["operationParameters"]) == (
        "REORG",
        {"predicate": "[]", "applyPurge": True},
    )
    assert rows(log) == [2, 3, 9]
    assert optimize(log, OptimizeRequest(PURGE)).version is None


def test_purge_of_a_file_without_rows_left_removes_it(tmp_path: Path) -> None:
    from delta_ds.testing import TableBuilder
    from spark_tests.behaviour.kernel.commands.whole_tables import IDS

    table = TableBuilder(tmp_path)
    table.create(IDS, properties={"delta.enableDeletionVectors": "true"}, reader_features=["deletionVectors"])
    add = table.write_file(ids(1))
    table.commit(add)
    table.delete_rows(add, [0])
    log = DeltaLog(tmp_path)
    done = optimize(log, OptimizeRequest(PURGE))
    assert (done.metrics["numFilesAdded"], log.open_snapshot().live_files().num_rows) == (0, 0)


# ---------------------------------------------------------------- order


def _spread_over(path: Path, **options: Any) -> DeltaLog:
    values = [(i * 7919) % 1000 for i in range(4000)]
    table = pa.table({"a": values, "b": [f"t{v * 31 % 1000:03}" for v in values], "id": list(range(4000))})
    return _appended(path, *(table.slice(n, 1000) for n in range(0, 4000, 1000)), **options)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("columns", [("a",), ("a", "b")])
def test_zorder_narrows_the_ranges_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...], in_memory: bool
) -> None:
    log = _spread_over(tmp_path)
    if not in_memory:
        monkeypatch.setattr(clustering_sort, "IN_MEMORY_BYTES", 0)
        monkeypatch.setattr(clustering_sort, "PIECE_BYTES", 2000)
    size = sum(log.open_snapshot().live_files().table["size"].to_pylist())
    request = OptimizeRequest(ZORDER, columns=columns).with_settings(max_file_size=size // 8)
    done = optimize(log, request)
    assert rows(log) == list(range(4000))
    assert done.metrics["zOrderStats"]["inputOtherFiles"] == {"num": 4, "size": size}
    assert done.metrics["numFilesAdded"] >= 7
    for column, value in (("a", "500"), ("b", "'t500'"))[: len(columns)]:
        assert log.snapshot().scan(f"{column} = {value}").num_files <= done.metrics["numFilesAdded"] // 2


@pytest.mark.parametrize(
    ("column", "condition", "kind"),
    [
        ("land", "DELTA_ZORDERING_ON_PARTITION_COLUMN", SchemaError),
        ("idd", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", SchemaError),
        ("late", "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", UnsupportedOperationError),
        ("list", "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", UnsupportedOperationError),
        ("map", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE", UnsupportedOperationError),
        ("maps", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE", UnsupportedOperationError),
    ],
)
def test_zorder_by_an_unfit_column_is_refused(
    tmp_path: Path, column: str, condition: str, kind: type[Exception]
) -> None:
    maps = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
    held = pa.StructArray.from_arrays([maps], ["m"])
    part = pa.table({"id": [1], "land": ["de"], "late": [1], "list": [[1]], "map": maps, "maps": held})
    log = _appended(tmp_path, part, partitionBy="land", **{"delta.dataSkippingNumIndexedCols": "1"})
    with pytest.raises(kind) as error:
        optimize(log, OptimizeRequest(ZORDER, columns=(column,)))
    assert error.value.condition == condition  # type: ignore[attr-defined]
    if column == "idd":
        assert "did you mean 'id'" in str(error.value)
    if column == "late":
        request = OptimizeRequest(ZORDER, columns=("late",)).with_settings(check_statistics=False)
        assert optimize(log, request).version == 1


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("columns", [("s",), ("s", "id"), ("l",), ("d.s",)])
def test_rows_are_arranged_by_structs_and_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...], in_memory: bool
) -> None:
    values = [(i * 7919) % 1000 for i in range(4000)]
    structs = pa.array([{"a": v // 10, "b": f"t{v}"} if v % 7 else None for v in values])
    table = pa.table(
        {
            "s": structs,
            "l": pa.array([[v // 10, v] for v in values]),
            "d": pa.StructArray.from_arrays([structs], ["s"]),
            "id": list(range(4000)),
        }
    )
    log = _appended(tmp_path, *(table.slice(n, 1000) for n in range(0, 4000, 1000)))
    if not in_memory:
        monkeypatch.setattr(clustering_sort, "IN_MEMORY_BYTES", 0)
        monkeypatch.setattr(clustering_sort, "PIECE_BYTES", 2000)
    size = sum(log.open_snapshot().live_files().table["size"].to_pylist())
    done = optimize(log, OptimizeRequest(ZORDER, columns=columns).with_settings(max_file_size=size // 8))
    assert rows(log) == list(range(4000))
    if columns != ("l",):
        field = f"{columns[0]}.a"
        assert log.snapshot().scan(f"{field} = 50").num_files <= done.metrics["numFilesAdded"] // 2


@pytest.mark.parametrize("in_memory", [True, False])
def test_texts_of_more_bytes_than_an_array_holds_are_arranged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    values = [(i * 7919) % 1000 for i in range(1000)]
    table = pa.table(
        {
            "id": values,
            "s": [f"t{v}" * 100 for v in values],
            "b": [bytes([v % 256]) for v in values],
            "n": [{"t": [f"n{v}"]} for v in values],
            "m": pa.array([[(f"k{v}", f"v{v}")] for v in values], pa.map_(pa.string(), pa.string())),
        }
    )
    log = _appended(tmp_path, *(table.slice(n, 250) for n in range(0, 1000, 250)))
    monkeypatch.setattr(clustering_sort, "_SHORT_OFFSETS", 0)
    monkeypatch.setattr(clustering_sort, "_AHEAD_BYTES", 2000)
    if not in_memory:
        monkeypatch.setattr(clustering_sort, "IN_MEMORY_BYTES", 0)
    optimize(log, OptimizeRequest(ZORDER, columns=("id",)))
    assert log.to_arrow().to_pylist() == table.sort_by("id").to_pylist()


def test_an_interrupt_leaves_no_new_file_and_begins_no_further_bin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [pa.table({"p": [n % 8], "id": [n]}) for n in range(16)]
    log = _appended(tmp_path, *parts, partitionBy="p")
    before = sorted(tmp_path.rglob("*.parquet"))
    begun: list[int] = []
    rewrite = command.rewrite_bin

    def counted(*arguments: Any) -> Any:
        begun.append(1)
        return rewrite(*arguments)

    def interrupted(work: list[Any]) -> Any:
        yield from [work[0]]
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "rewrite_bin", counted)
    monkeypatch.setattr(command, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        optimize(log, threads=1)
    assert begun
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert log.open_snapshot().version == 15


# ---------------------------------------------------------------- clustered tables


def test_clustering_is_incremental_and_leaves_complete_cubes_alone(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1, 5), ids(3), clusterBy="id")
    first = optimize(log)
    (add,) = bodies(log, first.version or 0, "add")
    assert add["clusteringProvider"] == "liquid"
    assert add["tags"]["ZCUBE_ZORDER_BY"] == '["id"]'
    (info,) = bodies(log, first.version or 0, "commitInfo")
    assert info["operationParameters"] == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": '["id"]', "auto": False, "isFull": False,
    }  # fmt: skip
    assert optimize(log).version is None
    log.write(ids(2))
    again = optimize(log)
    assert again.metrics["clusteringStats"] == {
        "inputZCubeFiles": {"numFiles": 1, "size": add["size"]},
        "inputOtherFiles": {"numFiles": 1, "size": again.metrics["filesRemoved"]["totalSize"] - add["size"]},
        "inputNumZCubes": 1,
        "mergedFiles": {"numFiles": 2, "size": again.metrics["filesRemoved"]["totalSize"]},
        "numOutputZCubes": 1,
    }
    log.write(ids(4))
    complete = OptimizeRequest().with_settings(min_cube_size=1)
    assert optimize(log, complete).metrics["numFilesRemoved"] == 1
    assert rows(log) == [1, 2, 3, 4, 5]


def test_full_clusters_again_what_was_clustered_by_other_columns(tmp_path: Path) -> None:
    part = pa.table({"id": [3, 1], "x": ["a", "b"]})
    log = _appended(tmp_path, part, part, clusterBy="id")
    optimize(log)
    cluster_by(log, ["x", "id"])
    assert optimize(log).version is None
    done = optimize(log, OptimizeRequest(FULL))
    (add,) = bodies(log, done.version or 0, "add")
    assert add["tags"]["ZCUBE_ZORDER_BY"] == '["x","id"]'
    assert optimize(log, OptimizeRequest(FULL)).version is None


def test_purge_keeps_the_cube_of_a_clustered_file(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1, 2), clusterBy="id", **{"delta.enableDeletionVectors": "true"})
    first = optimize(log)
    (add,) = bodies(log, first.version or 0, "add")
    from delta_ds.testing import TableBuilder

    table = TableBuilder(tmp_path)
    table.version = log.snapshot().version
    table.delete_rows({"add": add}, [0])
    done = optimize(log, OptimizeRequest(PURGE))
    (new,) = bodies(log, done.version or 0, "add")
    assert (new["tags"], new["clusteringProvider"]) == (add["tags"], "liquid")
    assert rows(log) == [2]


@pytest.mark.parametrize(
    ("request_", "condition"),
    [
        (OptimizeRequest(where=("id = 1",)), "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
        (OptimizeRequest(ZORDER, columns=("id",)), "DELTA_CLUSTERING_WITH_ZORDER_BY"),
    ],
)
def test_what_clustered_tables_do_not_have_is_refused(
    tmp_path: Path, request_: OptimizeRequest, condition: str
) -> None:
    log = _appended(tmp_path, ids(1), clusterBy="id")
    with pytest.raises(UnsupportedOperationError) as error:
        optimize(log, request_)
    assert error.value.condition == condition


def test_full_of_a_table_that_is_not_clustered_is_refused(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1))
    with pytest.raises(UnsupportedOperationError, match="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"):
        optimize(log, OptimizeRequest(FULL))


# ---------------------------------------------------------------- others at the same time


def test_a_concurrent_append_does_not_matter(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1), ids(2), **{"delta.isolationLevel": "Serializable"})
    plan = plan_optimize(log, OptimizeRequest())
    DeltaLog(tmp_path).write(ids(3))
    assert commit_optimize(log, plan, rewrite_all(plan, 1)) == 3
    assert rows(log) == [1, 2, 3]


def test_a_new_description_of_the_table_does_not_matter_while_the_files_are_there(tmp_path: Path) -> None:
    from delta_ds.kernel.transaction.alter.properties import set_properties

    log = _appended(tmp_path, ids(1), ids(2))
    plan = plan_optimize(log, OptimizeRequest())
    set_properties(DeltaLog(tmp_path), {"some": "thing"})
    assert commit_optimize(log, plan, rewrite_all(plan, 1)) == 3
    assert rows(log) == [1, 2]


def test_a_file_that_others_removed_stops_it_and_nothing_is_left_behind(tmp_path: Path) -> None:
    log = _appended(tmp_path, ids(1), ids(2))
    plan = plan_optimize(log, OptimizeRequest())
    adds = rewrite_all(plan, 1)
    DeltaLog(tmp_path).write(ids(7), mode="overwrite")
    with pytest.raises(ConcurrentDeleteReadException):
        commit_optimize(log, plan, adds)
    assert rows(log) == [7]
    assert _data_files(tmp_path) == 3


def test_a_missing_file_stops_it_and_nothing_is_left_behind(tmp_path: Path) -> None:
    log = _by_country(tmp_path)
    (tmp_path / bodies(log, 1, "add")[0]["path"]).unlink()
    with pytest.raises(DataFileError):
        optimize(log)
    assert _data_files(tmp_path) == 8
    assert log.snapshot().version == 2


# ---------------------------------------------------------------- settings


def test_settings_are_read_by_delta_sparks_names() -> None:
    found = settings_of(
        {
            "spark.databricks.delta.optimize.minFileSize": "0",
            "spark.databricks.delta.optimize.maxFileSize": "1m",
            "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.5",
            "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
        }
    )
    assert (found.min_file_size, found.max_file_size) == (0, 1 << 20)
    assert (found.max_deleted_rows_ratio, found.check_statistics) == (0.5, False)
    with pytest.raises(ValueError, match="maxDeletedRowsRatio"):
        settings_of({"spark.databricks.delta.optimize.maxDeletedRowsRatio": "5"})


@pytest.mark.parametrize(
    ("table", "session", "codec"),
    [
        (None, None, "ZSTD"),
        ("snappy", None, "SNAPPY"),
        ("snappy", "gzip", "GZIP"),
        (None, "NONE", "UNCOMPRESSED"),
    ],
)
def test_files_have_the_codec_of_the_session_else_of_the_table(
    tmp_path: Path, table: str | None, session: str | None, codec: str
) -> None:
    log = _appended(tmp_path, pa.table({"id": [1]}), pa.table({"id": [2]}), compression="lz4")
    if table is not None:
        set_properties(log, {"delta.parquet.compression.codec": table})
    optimize(log, OptimizeRequest(settings=settings_of({} if session is None else {CODEC: session})))
    (add,) = bodies(log, log.snapshot().version, "add")
    assert pq.read_metadata(tmp_path / add["path"]).row_group(0).column(0).compression == codec


def test_a_codec_that_is_not_written_matters_where_files_are(tmp_path: Path) -> None:
    log = _appended(tmp_path, pa.table({"id": [1]}))
    asked = OptimizeRequest(settings=settings_of({CODEC: "lzo"}))
    assert optimize(log, asked).version is None
    log.write(pa.table({"id": [2]}))
    with pytest.raises(InvalidOptionError, match="'lzo' for option 'compression'"):
        optimize(log, asked)
    assert log.snapshot().version == 1
