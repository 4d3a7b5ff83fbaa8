"""The acceptance yardstick passes a true record and names what is false in a false one."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import VARIANT, arrow_type
from delta_ds.testing import FIRST_COMMIT_MS, MINUTE_MS, TableBuilder
from spark_tests.engines.conformance.__main__ import main, report
from spark_tests.engines.conformance.acceptance import Verdict, run_case
from spark_tests.engines.conformance.cases import Case, NoCasesError, find_cases, prepare
from spark_tests.engines.conformance.engines import KernelEngine

Record = dict[str, Any]
TOO_EARLY = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A case of two versions; its second has the rows 1, 2 and 3 in two files."""
    folder = tmp_path / "tables" / "small"
    table = TableBuilder(folder / "table")
    table.create(ROWS.schema, properties={"a": "b"})
    one = table.write_file(ROWS.slice(0, 2), path="one.parquet")
    two = table.write_file(ROWS.slice(2), path="two.parquet")
    table.commit(one, two, {"txn": {"appId": "app", "version": 7}})
    (folder / "expected").mkdir()
    pq.write_table(ROWS, folder / "expected" / "v1.parquet")
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    read = {
        "min_reader": 1, "min_writer": 2, "reader_features": None, "writer_features": None,
        "schema": {"type": "struct", "fields": [field]}, "partition_columns": [], "properties": {"a": "b"},
        "metadata_id": table.state(0)[1]["metaData"]["id"], "files": 2,
        "active_files": ["one.parquet", "two.parquet"], "timestamp": FIRST_COMMIT_MS + MINUTE_MS,
        "operation": "WRITE", "rows": 3, "expected": "expected/v1.parquet",
    }  # fmt: skip
    record = {
        "name": "small", "what": "two files", "source": "test", "features": ["plain"], "expect": "ok",
        "oracle": "none", "session_timezone": "UTC", "reads": {"1": read},
        "versions": {"latest": 1, "readable": [0, 1], "unreadable": [
            {"version": 2, "error": "DELTA_VERSION_NOT_FOUND"}]},
        "txns": {"app": 7}, "log_mtimes_ms": {},
        "skipping": [{"filter": "id = 3", "files_after_skipping": 1, "rows": 1}],
        "timestamp_travel": [
            {"timestamp_ms": FIRST_COMMIT_MS, "timestamp": "first", "version": 0},
            {"timestamp_ms": 0, "timestamp": "1970", "error": TOO_EARLY},
        ],
    }  # fmt: skip
    record["log_mtimes_ms"] = {"0": FIRST_COMMIT_MS, "1": FIRST_COMMIT_MS + MINUTE_MS}
    (folder / "case.json").write_text(json.dumps(record))
    return Case(folder, record)


def judge(case: Case, change: Callable[[Record], object] = lambda record: None) -> Verdict:
    record = copy.deepcopy(case.record)
    change(record)
    return run_case(Case(case.folder, record), KernelEngine())


def test_true_record_passes(case: Case) -> None:
    assert judge(case).failures == []


FALSE_RECORDS: dict[str, tuple[str, Callable[[Record], object]]] = {
    "files": ("v1 files", lambda r: r["reads"]["1"].update(files=3)),
    "paths": ("v1 active_files", lambda r: r["reads"]["1"].update(active_files=["one.parquet"])),
    "schema": ("v1 schema", lambda r: r["reads"]["1"]["schema"]["fields"][0].update(nullable=False)),
    "partitioning": ("v1 partition_columns", lambda r: r["reads"]["1"].update(partition_columns=["id"])),
    "properties": ("v1 properties", lambda r: r["reads"]["1"].update(properties={})),
    "reader": ("v1 min_reader", lambda r: r["reads"]["1"].update(min_reader=2)),
    "writer": ("v1 min_writer", lambda r: r["reads"]["1"].update(min_writer=3)),
    "features": ("v1 reader_features", lambda r: r["reads"]["1"].update(reader_features=[])),
    "id": ("v1 metadata_id", lambda r: r["reads"]["1"].update(metadata_id="x")),
    "table name": ("v1 table_name", lambda r: r["reads"]["1"].update(table_name="x")),
    "time": ("v1 in history", lambda r: r["reads"]["1"].update(timestamp=5)),
    "operation": ("v1 in history", lambda r: r["reads"]["1"].update(operation="MERGE")),
    "vectors": ("v1 files_with_dv", lambda r: r["reads"]["1"].update(files_with_dv=1)),
    "row count": ("the record says 9 rows", lambda r: r["reads"]["1"].update(rows=9)),
    "scan error": ("must fail", lambda r: (r["reads"]["1"].pop("expected"), r["reads"]["1"].update(
        scan_error={"class": "FAILED_READ_FILE.FILE_NOT_EXIST"}))),
    "latest": ("latest version", lambda r: r["versions"].update(latest=2)),
    "readable": ("version 5", lambda r: r["versions"].update(readable=[0, 5])),
    "unreadable": ("unreadable version 0", lambda r: r["versions"]["unreadable"][0].update(version=0)),
    "why unreadable": ("does not speak of", lambda r: r["versions"]["unreadable"][0].update(
        error="DELTA_UNSUPPORTED_FEATURES_FOR_READ")),
    "transactions": ("txns", lambda r: r.update(txns={"app": 8})),
    "domains": ("domains", lambda r: r.update(domains={"d": "{}"})),
    "filter rows": ("filter 'id = 3' rows", lambda r: r["skipping"][0].update(rows=2)),
    "filter files": ("1 files are left", lambda r: r["skipping"][0].update(files_after_skipping=0)),
    "filter error": ("must fail", lambda r: r["skipping"][0].update(error="X")),
    "travel": ("travel to first", lambda r: r["timestamp_travel"][0].update(version=1)),
    "travel error": ("does not speak of", lambda r: r["timestamp_travel"][1].update(
        error="DELTA_TIMESTAMP_GREATER_THAN_COMMIT")),
    "refusal": ("open: was read", lambda r: r.update(
        expect="error", error={"class": "X", "stage": "snapshot"})),
    "scan refusal": ("scan: was read", lambda r: r.update(
        expect="error", error={"class": "X", "stage": "scan"})),
    "changes": ("changes 0..1", lambda r: r.update(cdf=[
        {"starting": 0, "ending": 1, "rows": 3, "expected": "expected/v1.parquet"}])),
    "row ids": ("row ids", lambda r: r.update(row_tracking={
        "version": 1, "rows": 3, "expected": "expected/v1.parquet"})),
    "unknown key": ("does not compare", lambda r: r.update(new_key=1)),
    "unknown key of a read": ("does not compare", lambda r: r["reads"]["1"].update(new_key=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE_RECORDS)
def test_false_record_is_named(case: Case, name: str) -> None:
    text, change = FALSE_RECORDS[name]
    assert any(text in failure for failure in judge(case, change).failures)


def test_row_ids_beside_a_variant_are_compared_as_recorded(tmp_path: Path) -> None:
    one = {"value": b"\x0c\x05", "metadata": b"\x01\x00\x00"}
    rows = pa.table({"id": [1, 2], "v": pa.array([one, None], arrow_type(VARIANT))})
    log = DeltaLog(str(tmp_path / "table"))
    log.write(rows, options={"delta.enableRowTracking": "true"})
    recorded = {"id": [1, 2], "v": ["5", None], "v__schema_of_variant": ["BIGINT", None]}
    ids = {"__row_id": [0, 1], "__row_commit_version": [0, 0]}
    text = pa.schema([(n, pa.string() if n.startswith("v") else pa.int64()) for n in (*recorded, *ids)])
    pq.write_table(pa.table({**recorded, **ids}, text), tmp_path / "ids.parquet")
    encodings = {"v": "to_json", "v__schema_of_variant": "schema_of_variant of v"}
    record = {
        "name": "v", "expect": "ok", "reads": {}, "versions": {"latest": 0, "readable": []}, "encodings": encodings,
        "row_tracking": {"version": 0, "rows": 2, "expected": "ids.parquet"},
    }  # fmt: skip
    assert run_case(Case(tmp_path, record), KernelEngine()).failures == []
    pq.write_table(pa.table({**recorded, "v": ["6", None], **ids}, text), tmp_path / "ids.parquet")
    assert "row ids" in run_case(Case(tmp_path, record), KernelEngine()).line()


def test_other_rows_are_named(case: Case) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2, 4], pa.int64())}), case.folder / "expected" / "v1.parquet")
    assert "rows differ" in judge(case).line()


def test_error_that_is_not_ours_is_named(case: Case) -> None:
    class Raw(KernelEngine):
        def table(self, path: str, zone: str) -> Any:
            table = super().table(path, zone)
            table.state = lambda version: dict[str, Any]()["metaData"]  # type: ignore[method-assign]
            return table

    verdict = run_case(case, Raw())
    assert any("KeyError" in failure for failure in verdict.failures)
    assert any("not one of our errors" in failure for failure in verdict.failures)


@pytest.mark.parametrize("up", [0, 1, 2])
def test_cases_are_found_from_case_tables_and_parent(case: Case, up: int) -> None:
    folder = [case.folder, *case.folder.parents][up]
    assert [found.name for found in find_cases(folder)] == ["small"]


def test_folder_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCasesError):
        find_cases(tmp_path)


def test_prepared_copy_has_paths_and_times_put_in(case: Case, tmp_path: Path) -> None:
    commit = case.folder / "table" / "_delta_log" / f"{1:020d}.json"
    commit.write_bytes(commit.read_bytes() + b'{"commitInfo":{"path":"@@CASE_DIR@@/base"}}')
    case.record["placeholders"] = {"@@CASE_DIR@@": "the case's folder"}
    case.record["reads"]["1"]["active_files"] = ["@@CASE_DIR@@/base/x"]
    copied = prepare(case, tmp_path / "copy")
    written = Path(copied.table) / "_delta_log" / commit.name
    assert f"{tmp_path}/copy/base".encode() in written.read_bytes()
    assert copied.record["reads"]["1"]["active_files"] == [f"{tmp_path}/copy/base/x"]
    assert written.stat().st_mtime_ns == (FIRST_COMMIT_MS + MINUTE_MS) * 1_000_000


def test_command_ends_with_counts_and_status(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acceptance", str(case.folder)]) == 0
    assert capsys.readouterr().out.splitlines() == ["1 passed, 0 failed"]
    case.record["reads"]["1"]["files"] = 9
    (case.folder / "case.json").write_text(json.dumps(case.record))
    assert main(["acceptance", str(case.folder)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "FAILED small: v1 files: 2 instead of 9",
        "0 passed, 1 failed",
    ]


def test_command_tells_of_reads_that_another_path_served(capsys: pytest.CaptureFixture[str]) -> None:
    served = [
        Verdict("a", notes=Counter({"a change feed": 2})),
        Verdict("b", notes=Counter({"a change feed": 1})),
    ]
    assert report(served) == 0
    assert capsys.readouterr().out.splitlines()[0] == "served by another path: 3 reads (a change feed)"


def test_disputed_case_is_told_and_not_counted(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.record.update(disputed="nobody knows", txns={})
    (case.folder / "case.json").write_text(json.dumps(case.record))
    assert main(["acceptance", str(case.folder)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("disputed small") and "nobody knows" in first
    assert last == "0 passed, 0 failed"


@pytest.mark.parametrize(
    "arguments",
    [
        ["conflicts", "some.json"],
        ["acceptance", "/nowhere"],
        ["acceptance", "{case}", "--case", "other-*"],
    ],
)
def test_command_that_cannot_run_says_so(
    case: Case, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([a.format(case=case.folder) for a in arguments]) == 2
    out = capsys.readouterr()
    assert out.err and not out.out
