"""Files rewritten in place of their rows: what is read afterwards is what the changes say, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DataFileError, InvariantViolationError
from delta_ds.kernel.commands.convert_to_delta import convert_to_delta
from delta_ds.kernel.commands.dml import column_rewrite, file_rewrite
from delta_ds.kernel.commands.dml.candidates import Rewritten, candidate_files, together
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, DELETE, FILE, NONE, ROW, UPDATE, ChangedRows
from delta_ds.kernel.commands.dml.commit import DmlCommand, commit_dml
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_changed_files
from delta_ds.kernel.commands.dml.plan import FileRewrite, plan_dml, plan_file_rewrite
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.files.write import partition_files
from delta_ds.kernel.format.options.settings import RECORDS_PER_FILE, SessionFacts
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.alter.properties import set_properties

_LETTERS = "abcäö𝄞"
_LAYOUTS: dict[str, dict[str, str]] = {
    "plain": {},
    "partitioned": {"partitionBy": "p"},
    "mapped": {"delta.columnMapping.mode": "name"},
    "partitioned and mapped": {"partitionBy": "p", "delta.columnMapping.mode": "name"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "ids": {"delta.enableRowTracking": "true"},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "vectors, partitioned, mapped": {
        "partitionBy": "p",
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
    },
    "vectors and feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "vectors and ids": {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
}


def _rows(seed: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)
    numbers = random.integers(-100, 100, count).tolist()

    def some(make: Any) -> list[Any]:
        return [None if random.random() < 0.2 else make(n) for n in numbers]

    return pa.table(
        {
            "id": pa.array(range(seed * 1000, seed * 1000 + count), pa.int64()),
            "p": pa.array([n % 2 for n in numbers], pa.int32()),
            "text": pa.array(some(lambda n: _LETTERS[n % 6] * (abs(n) % 40)), pa.string()),
            "ratio": pa.array(some(lambda n: math.nan if n % 7 == 0 else n / 3), pa.float64()),
            "price": pa.array(some(lambda n: Decimal(n).scaleb(-2)), pa.decimal128(9, 2)),
            "day": pa.array(some(lambda n: n), pa.int32()).cast(pa.date32()),
            "flag": pa.array(some(lambda n: n % 2 == 0), pa.bool_()),
            "list": pa.array(some(lambda n: [n, None]), pa.list_(pa.int64())),
            "inner": pa.array(
                some(lambda n: {"a": n, "b": str(n)}), pa.struct({"a": pa.int64(), "b": pa.string()})
            ),
        }
    )


def _new_table(path: str, options: dict[str, str], group_rows: int = 1 << 20, files: int = 2) -> Snapshot:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partition_files, "GROUP_ROWS", group_rows)
        for n in range(files):
            rows = pa.concat_tables(_rows(n + 1, 40).slice(at, group_rows) for at in range(0, 40, group_rows))
            DeltaLog(path).write(rows, options=options if not n else {})
    return DeltaLog(path).open_snapshot()


def _changes(files: dict[int, list[tuple[int, int]]], values: dict[str, Any] | None = None) -> pa.RecordBatch:
    """Changed rows: by the number of a file, positions and clauses; one value a column for all."""
    rows = [(number, row, clause) for number, found in files.items() for row, clause in found]
    columns: dict[str, Any] = {
        FILE: pa.array([row[0] for row in rows], pa.int32()),
        ROW: pa.array([row[1] for row in rows], pa.int64()),
        CLAUSE: pa.array([row[2] for row in rows], pa.int32()),
    }
    for name, value in (values or {}).items():
        columns[name] = pa.array([value.as_py()] * len(rows), value.type)
    return pa.RecordBatch.from_pydict(columns)


def _plan(snapshot: Snapshot, *actions: int, **options: Any) -> FileRewrite:
    return plan_file_rewrite(
        snapshot, plan_dml(snapshot), candidate_files(snapshot, None, "UTC"), actions, **options
    )


def _commit(snapshot: Snapshot, plan: FileRewrite, found: Rewritten) -> pa.Table:
    _commit_only(snapshot, plan, found)
    return _sorted(DeltaLog(snapshot.storage.url).open_snapshot())


def _commit_only(snapshot: Snapshot, plan: FileRewrite, found: Rewritten) -> None:
    deleted = {plan.files[number].path: places for number, places in found.positions.items()}
    removed = [] if deleted else [plan.files[number].path for number in found.files]
    change = DmlCommand("UPDATE", removed=removed, deleted=deleted, results=[found.result], plan=plan.change)
    commit_dml(snapshot, change)


def _sorted(snapshot: Snapshot) -> pa.Table:
    found = Scan(snapshot).to_arrow()
    return found.sort_by([("id", "ascending"), ("p", "ascending")])


def _as_texts(table: pa.Table) -> list[str]:
    """Rows as texts, in which NaN equals NaN."""
    return [repr(row) for row in table.to_pylist()]


_NEW: dict[str, Any] = {
    "p": pa.scalar(7, pa.int32()),
    "text": pa.scalar("neu", pa.string()),
    "ratio": pa.scalar(math.nan, pa.float64()),
    "price": pa.scalar(Decimal("12.34"), pa.decimal128(9, 2)),
    "day": pa.scalar(None, pa.date32()),
    "flag": pa.scalar(True, pa.bool_()),
    "list": pa.scalar([1], pa.list_(pa.int64())),
    "inner": pa.scalar({"a": 1, "b": None}, pa.struct({"a": pa.int64(), "b": pa.string()})),
}


@given(
    layout=st.sampled_from(sorted(_LAYOUTS)),
    group_rows=st.sampled_from([9, 1 << 20]),
    names=st.lists(st.sampled_from(sorted(_NEW)), unique=True, max_size=4),
    seed=st.integers(0, 1 << 16),
    deletes=st.booleans(),
    small=st.booleans(),
)
def test_rows_afterwards_are_those_before_with_the_changes(
    layout: str, group_rows: int, names: list[str], seed: int, deletes: bool, small: bool
) -> None:
    random = np.random.default_rng(seed)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        if small:
            patched.setattr(file_rewrite, "FEWEST_SHARED", 0)
        else:
            _takes_files_for_large_ones(patched)
        snapshot = _new_table(f"{folder}/t", _LAYOUTS[layout], group_rows)
        plan = _plan(snapshot, UPDATE, DELETE)
        values = {name: _NEW[name] for name in names}
        kinds = ([0] if names else []) + ([1] if deletes or not names else []) + [NONE]
        changed: dict[int, list[tuple[int, int]]] = {}
        expected = []
        for number, piece in plan.files.items():
            scan = Scan(snapshot, metadata_columns=("row_index",))
            rows = [r for r in scan.slices() if r.path == piece.path]
            assert rows
            table = pa.Table.from_batches(read_slices(snapshot.storage, scan.plan, rows))
            for row in table.to_pylist():
                at = row.pop("_metadata")["row_index"]
                clause = int(random.choice(kinds)) if random.random() < 0.4 else None
                if clause is not None:
                    changed.setdefault(number, []).append((at, clause))
                if clause == 0:
                    row.update({name: value.as_py() for name, value in values.items()})
                if clause != 1:
                    expected.append(row)
        batch = _changes(changed, values)
        found = rewrite_changed_files(plan, [batch.slice(0, 5), batch.slice(5)])
        counts = np.unique(batch[CLAUSE].to_numpy(), return_counts=True)
        assert found.by_clause == {int(c): int(n) for c, n in zip(*counts, strict=True) if c != NONE}
        after = _commit(snapshot, plan, found) if found.files else _sorted(snapshot)
        expected_table = pa.Table.from_pylist(expected, after.schema)
        expected_table = expected_table.sort_by([("id", "ascending"), ("p", "ascending")])
        assert _as_texts(after) == _as_texts(expected_table)
        _check_statistics(DeltaLog(f"{folder}/t").open_snapshot())


def _takes_files_for_large_ones(patched: pytest.MonkeyPatch) -> None:
    """Files are rewritten one by one, by their columns where that can be."""
    for name in ("SMALL_BYTES", "LEAST_COPIED"):
        patched.setattr(file_rewrite, name, 0)


def _check_statistics(snapshot: Snapshot) -> None:
    """Statistics of each file are those of its rows."""
    files = Scan(snapshot).files()
    for path, text in zip(files["path"].to_pylist(), files["stats"].to_pylist(), strict=True):
        table = pq.read_table(f"{snapshot.storage.url}/{path}", partitioning=None)
        stats = json.loads(text)
        assert stats["numRecords"] == table.num_rows
        for field in snapshot.schema:
            name = field.metadata.get("delta.columnMapping.physicalName", field.name)
            if name not in table.column_names or field.name in snapshot.metadata.partition_columns:
                continue
            if field.name not in ("list", "inner"):
                assert stats["nullCount"][name] == table[name].null_count
            if field.name == "id":
                ids = table[name].to_pylist()
                assert (stats["minValues"][name], stats["maxValues"][name]) == (min(ids), max(ids))


@pytest.mark.parametrize("names", [["text"], ["ratio", "flag", "p"]])
def test_columns_that_stay_are_copied_and_nothing_else_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    _takes_files_for_large_ones(monkeypatch)
    snapshot = _new_table(str(tmp_path / "t"), {}, 9, files=1)
    plan = _plan(snapshot, UPDATE)
    values = {name: _NEW[name] for name in names}
    batch = _changes({0: [(3, 0), (17, 0), (39, 0)]}, values)
    copied = rewrite_changed_files(plan, [batch]).result.adds
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(column_rewrite.ColumnRewrite, "serves", staticmethod(lambda *_: False))
        whole = rewrite_changed_files(plan, [batch]).result.adds
    one, other = (tmp_path / "t" / adds[0]["path"] for adds in (copied, whole))
    assert pq.read_table(one).equals(pq.read_table(other)) or _as_texts(pq.read_table(one)) == _as_texts(
        pq.read_table(other)
    )
    assert json.loads(copied[0]["stats"]) == json.loads(whole[0]["stats"])
    assert pq.read_metadata(one).num_row_groups == 5
    before = pq.read_metadata(tmp_path / "t" / plan.files[0].path)
    stays = before.row_group(2).column(0)
    assert pq.read_metadata(one).row_group(2).column(0).total_compressed_size == stays.total_compressed_size


@pytest.mark.parametrize("dictionary", [True, False])
def test_copied_chunks_without_rows_begin_where_their_bytes_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dictionary: bool
) -> None:
    _takes_files_for_large_ones(monkeypatch)
    rows = _rows(1, 10)
    path = tmp_path / "file.parquet"
    with pq.ParquetWriter(path, rows.schema, use_dictionary=dictionary) as writer:
        for part in (rows.slice(0, 0), rows, rows.slice(0, 0)):
            writer.write_table(part)
    convert_to_delta(DeltaLog(tmp_path))
    snapshot = DeltaLog(tmp_path).open_snapshot()
    plan = _plan(snapshot, UPDATE)
    found = rewrite_changed_files(plan, [_changes({0: [(3, 0)]}, {"text": _NEW["text"]})])
    old, new = path, tmp_path / found.result.adds[0]["path"]
    groups = [pq.read_metadata(new).row_group(number) for number in range(3)]
    assert [group.num_rows for group in groups] == [0, 10, 0]
    for number, group in enumerate(groups):
        before = pq.read_metadata(old).row_group(number)
        for leaf in range(group.num_columns):
            if group.column(leaf).path_in_schema != "text":
                assert _bytes_of(new, group.column(leaf)) == _bytes_of(old, before.column(leaf))
    assert _as_texts(pl.read_parquet(new).to_arrow()) == _as_texts(_commit(snapshot, plan, found))


def _bytes_of(path: Path, chunk: Any) -> bytes:
    """The bytes of a column chunk, where readers look for them."""
    places = [place for place in (chunk.dictionary_page_offset, chunk.data_page_offset) if place]
    return path.read_bytes()[min(places, default=0) :][: chunk.total_compressed_size]


def test_nan_counts_in_statistics_of_files_that_parquet_java_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _takes_files_for_large_ones(monkeypatch)
    rows = {"id": [1, 2, 3], "ratio": [1.0, 2.0, 3.0], "text": ["a", "b", "c"], "list": [[1.0], None, []]}
    DeltaLog(tmp_path).write(pa.table(rows))
    (path,) = tmp_path.glob("*.parquet")
    arrow = pq.read_metadata(path).created_by.encode()
    java = b"parquet-mr version 1.16.0".ljust(len(arrow))
    path.write_bytes(path.read_bytes().replace(arrow, java))
    for name in ("ratio", "text"):  # the second change takes what the first wrote as it is
        snapshot = DeltaLog(tmp_path).open_snapshot()
        plan = _plan(snapshot, UPDATE)
        found = rewrite_changed_files(plan, [_changes({0: [(1, 0)]}, {name: _NEW[name]})])
        stats = json.loads(found.result.adds[0]["stats"])
        assert (stats["minValues"]["ratio"], stats["maxValues"]["ratio"]) == (1.0, "NaN")
        _commit_only(snapshot, plan, found)
    footer = pq.read_metadata(tmp_path / found.result.adds[0]["path"])
    assert footer.created_by == java.decode()
    assert [footer.row_group(0).column(n).is_stats_set for n in range(4)] == [True, False, True, False]


def test_new_values_of_a_file_may_be_more_than_one_array_holds() -> None:
    # The batches share their text.
    text = pa.array(["x" * (1 << 20)] * 64)
    rows = pa.Table.from_batches(
        pa.RecordBatch.from_pydict(
            {
                FILE: pa.array([0] * 64, pa.int32()),
                ROW: pa.array(range(at, at + 64), pa.int64()),
                CLAUSE: pa.array([NONE, *[0] * 63], pa.int32()),
                "text": text,
            }
        )
        for at in range(0, 64 * 36, 64)
    )
    changed = ChangedRows.of(rows, [UPDATE], False)
    assert changed is not None and len(changed) == 63 * 36
    assert changed.given_values(np.array([0, 62, 63]))["text"].to_pylist() == ["x" * (1 << 20)] * 3


@pytest.mark.parametrize("layout", ["plain", "partitioned", "ids"])
def test_rows_of_small_files_share_new_files_as_long_as_those_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    snapshot = _new_table(str(tmp_path), _LAYOUTS[layout], files=4)
    plan = _plan(snapshot, DELETE)
    batch = _changes({number: [(1, 0)] for number in plan.files})
    assert len(rewrite_changed_files(plan, [batch]).result.adds) == len(plan.files)
    monkeypatch.setattr(file_rewrite, "FEWEST_SHARED", len(plan.files))
    shared = rewrite_changed_files(plan, [batch]).result.adds
    assert len(shared) == len({piece.partition_values for piece in plan.files.values()})
    monkeypatch.setattr(file_rewrite, "SMALL_BYTES", sum(piece.size for piece in plan.files.values()) - 1)
    found = rewrite_changed_files(plan, [batch])
    assert len(found.result.adds) > len(shared)
    after = _commit(snapshot, plan, found)
    assert after.num_rows == 4 * 40 - len(plan.files)
    _check_statistics(DeltaLog(tmp_path).open_snapshot())


def test_file_without_changed_rows_stays(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path), {})
    found = rewrite_changed_files(
        _plan(snapshot, UPDATE), [_changes({0: [(1, NONE)], 1: [(2, 0)]}, {"p": _NEW["p"]})]
    )
    assert (found.files, found.seen, len(found.result.adds)) == ((1,), True, 1)


def test_file_all_of_whose_rows_go_is_not_read_beyond_its_footer(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path), {}, files=1)
    plan = _plan(snapshot, DELETE)
    file = Path(tmp_path, plan.files[0].path)
    first_column = pq.read_metadata(file).row_group(0).column(0)
    with file.open("r+b") as content:
        content.seek(4)
        content.write(bytes(first_column.total_compressed_size))
    found = rewrite_changed_files(plan, [_changes({0: [(n, 0) for n in range(40)]})])
    assert (found.files, found.rows, found.result.adds) == ((0,), 40, [])


def test_row_named_twice_is_ambiguous_unless_it_may_be(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path), {}, files=1)
    twice = _changes({0: [(1, 0), (1, 0), (2, NONE), (2, NONE), (3, NONE), (3, 0)]})
    assert rewrite_changed_files(_plan(snapshot, DELETE), [twice]).ambiguous
    found = rewrite_changed_files(_plan(snapshot, DELETE, repeated=True), [twice])
    assert (found.ambiguous, found.rows, found.result.rows) == (False, 2, 38)


def test_changed_row_that_breaks_a_constraint_leaves_no_file(tmp_path: Path) -> None:
    options = {"delta.constraints.positive": "id >= 0"}
    snapshot = _new_table(str(tmp_path), options, files=1)
    before = set(tmp_path.rglob("*.parquet"))
    batch = _changes({0: [(1, 0)]}, {"id": pa.scalar(-1, pa.int64())})
    with pytest.raises(InvariantViolationError, match="positive"):
        rewrite_changed_files(_plan(snapshot, UPDATE), [batch])
    assert set(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize("layout", ["vectors", "vectors and feed"])
def test_marked_rows_stay_in_their_file_and_new_ones_have_one_of_their_own(
    tmp_path: Path, layout: str
) -> None:
    snapshot = _new_table(str(tmp_path), _LAYOUTS[layout])
    plan = _plan(snapshot, UPDATE, DELETE)
    batch = _changes({0: [(1, 0), (2, 1)], 1: [(3, 0)]}, {"text": _NEW["text"]})
    found = rewrite_changed_files(plan, [batch])
    assert {number: places.tolist() for number, places in found.positions.items()} == {0: [1, 2], 1: [3]}
    (new,) = found.result.adds
    assert pq.read_table(tmp_path / new["path"])["id"].to_pylist() == [1001, 2003]
    assert found.result.rows == 2
    after = _commit(snapshot, plan, found)
    assert after.num_rows == 79
    assert {row["id"] for row in after.to_pylist() if row["text"] == "neu"} == {1001, 2003}


@pytest.mark.parametrize("names", [[], ["text"]])
def test_row_that_the_file_does_not_have_is_an_error_that_names_it(tmp_path: Path, names: list[str]) -> None:
    snapshot = _new_table(str(tmp_path), {}, files=1)
    before = set(tmp_path.rglob("*.parquet"))
    batch = _changes({0: [(99, 0)]}, {name: _NEW[name] for name in names})
    with pytest.raises(DataFileError, match="0 of the 1 rows.*nothing was committed"):
        rewrite_changed_files(_plan(snapshot, UPDATE if names else DELETE), [batch])
    assert set(tmp_path.rglob("*.parquet")) == before


def test_deleted_rows_stay_deleted(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path), {"delta.enableDeletionVectors": "true"}, files=1)
    (path,) = snapshot.live_files().table["path"].to_pylist()
    commit_dml(snapshot, DmlCommand("DELETE", deleted={path: np.array([0, 5], np.uint64)}))
    set_properties(DeltaLog(tmp_path), {"delta.enableDeletionVectors": "false"})
    snapshot = DeltaLog(tmp_path).open_snapshot()
    plan = _plan(snapshot, UPDATE)
    found = rewrite_changed_files(plan, [_changes({0: [(6, 0)]}, {"text": _NEW["text"]})])
    after = _commit(snapshot, plan, found)
    assert after.num_rows == 38
    assert [row["id"] for row in after.to_pylist() if row["text"] == "neu"] == [1006]
    with pytest.raises(DataFileError, match="0 of the 1 rows"):
        rewrite_changed_files(plan, [_changes({0: [(0, 0)]}, {"text": _NEW["text"]})])


def test_change_files_have_rows_before_and_after(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path), {"delta.enableChangeDataFeed": "true"}, files=1)
    plan = _plan(snapshot, UPDATE, DELETE)
    found = rewrite_changed_files(plan, [_changes({0: [(1, 0), (2, 1)]}, {"text": _NEW["text"]})])
    _commit(snapshot, plan, found)
    rows = DeltaLog(tmp_path).changes(1, 1).to_arrow().to_pylist()
    kinds = {(row["_change_type"], row["id"], row["text"] == "neu") for row in rows}
    assert kinds == {
        ("update_preimage", 1001, False),
        ("update_postimage", 1001, True),
        ("delete", 1002, False),
    }


def test_rows_keep_their_ids(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path), {"delta.enableRowTracking": "true"})
    fields = ("row_id", "row_commit_version")

    def ids(snapshot: Snapshot) -> dict[int, tuple[int, int]]:
        rows = Scan(snapshot, metadata_columns=fields).to_arrow().to_pylist()
        return {row["id"]: tuple(row["_metadata"][name] for name in fields) for row in rows}

    before = ids(snapshot)
    plan = _plan(snapshot, UPDATE)
    found = rewrite_changed_files(plan, [_changes({1: [(1, 0)]}, {"text": _NEW["text"]})])
    _commit(snapshot, plan, found)
    after = ids(DeltaLog(tmp_path).open_snapshot())
    (changed,) = [id for id in after if after[id] != before[id]]
    assert after[changed] == (before[changed][0], 2)


def test_results_of_tasks_add_up() -> None:
    parts = [
        Rewritten(files=(3,), seen=True, by_clause={0: 2}),
        Rewritten(files=(1,), by_clause={0: 1, 1: 4}),
    ]
    found = together([*parts, replace(parts[0], files=(), by_clause={}, ambiguous=True, milliseconds=5)])
    assert (found.files, found.by_clause, found.ambiguous, found.milliseconds) == (
        (1, 3),
        {0: 3, 1: 4},
        True,
        5,
    )
    assert together([]) == Rewritten()


def test_a_file_of_more_rows_than_the_table_allows_becomes_several(tmp_path: Path) -> None:
    snapshot = _new_table(str(tmp_path / "t"), {}, 9, files=1)
    change = plan_dml(snapshot, facts=SessionFacts({RECORDS_PER_FILE: "20"}))
    plan = plan_file_rewrite(snapshot, change, candidate_files(snapshot, None, "UTC"), [UPDATE])
    rewritten = rewrite_changed_files(plan, [_changes({0: [(3, 0)]}, {"text": _NEW["text"]})])
    assert max(json.loads(add["stats"])["numRecords"] for add in rewritten.result.adds) <= 20
