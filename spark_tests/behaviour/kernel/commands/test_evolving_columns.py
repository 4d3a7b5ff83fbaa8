"""Tables whose columns are added, renamed, dropped, widened and moved: RESTORE, change feeds and clones.

Whatever happened in between, a version that is gone back to, or cloned, has the rows and columns that it had; the
changes of each commit tell which rows came and went.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import ChangeDataError
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import UNMAP, OptimizeRequest
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.format.schema.types import INTEGER, LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.columns import add_columns, drop_columns, rename_column
from spark_tests.behaviour.kernel.commands.streaming.streams import open_source, read
from spark_tests.engines.conformance.schema_changes import Case, cases, make, rows
from spark_tests.full_form import examples

PROPERTIES = {"delta.enableTypeWidening": "true", "delta.enableChangeDataFeed": "true"}
Rows = list[dict[str, Any]]


def state(log: DeltaLog, version: int | None = None) -> tuple[str, Rows]:
    snapshot = log.snapshot(version)
    found = snapshot.scan().to_arrow().sort_by("id")
    return str(snapshot.schema), found.to_pylist()


@dataclass
class Told:
    """A table, its clone, and what each version was when it was made."""

    log: DeltaLog
    clone: DeltaLog
    versions: dict[int, tuple[str, Rows]] = field(default_factory=dict)
    next_id: int = 0

    def write(self, count: int) -> None:
        schema = self.log.snapshot().scan().to_arrow().schema
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        table = rows(schema, *(n % 100 for n in ids)).set_column(0, "id", pa.array(ids, pa.int64()))
        self.log.write(table)

    def replace(self, which: int) -> None:
        """Put another row in the place of one."""
        before = [row["id"] for row in state(self.log)[1]]
        if before:
            gone = before[which % len(before)]
            schema = self.log.snapshot().scan().to_arrow().schema
            row = rows(schema, 7).set_column(0, "id", pa.array([gone], pa.int64()))
            self.log.write(row, "overwrite", {"replaceWhere": f"id = {gone}"})

    def change(self, kind: str, which: int) -> None:
        """Change a column, if there is one that can be changed so."""
        names = [f.name for f in self.log.snapshot().schema if f.name not in ("id", "s")]
        inner = self.log.snapshot().schema.find("s")
        assert inner is not None and isinstance(inner.type, StructType)
        if kind == "add":
            new = StructType((StructField(f"c{len(self.versions)}", INTEGER),))
            add_columns(self.log, new, first=False, parent="s" if which % 3 == 0 else None)
        elif kind == "rename" and which % 3 == 0:
            rename_column(self.log, f"s.{inner.type.names[0]}", f"r{len(self.versions)}")
        elif kind == "rename" and names:
            rename_column(self.log, names[which % len(names)], f"r{len(self.versions)}")
        elif kind == "drop" and which % 3 == 0 and len(inner.type) > 1:
            drop_columns(self.log, [f"s.{inner.type.names[which % len(inner.type)]}"])
        elif kind == "drop" and names:
            drop_columns(self.log, [names[which % len(names)]])
        elif kind == "move" and names:
            alter_column(self.log, names[which % len(names)], after="id")
        elif kind == "widen":
            narrow = [
                n for n in names if getattr(self.log.snapshot().schema.find(n), "type", None) == INTEGER
            ]
            if narrow:
                alter_column(self.log, narrow[which % len(narrow)], data_type=LONG)

    def note(self) -> None:
        """Remember what versions are, and hold the changes of each commit against them."""
        last = self.log.snapshot().version
        for version in range(max(self.versions, default=-1) + 1, last + 1):
            self.versions[version] = state(self.log, version)
            changed = self.log.changes(version, version).to_arrow().to_pylist()
            came = Counter(r["id"] for r in changed if r["_change_type"] in ("insert", "update_postimage"))
            went = Counter(r["id"] for r in changed if r["_change_type"] in ("delete", "update_preimage"))
            after = Counter(row["id"] for row in self.versions[version][1])
            before = Counter(row["id"] for row in self.versions[version - 1][1]) if version else Counter()
            assert before - went + came == after and not went - before


_STEPS = st.tuples(
    st.sampled_from(
        ["write", "replace", "restore", "clone", *["add", "rename", "drop", "move", "widen"] * 2]
    ),
    st.integers(0, 11),
)


@given(st.sampled_from(["name", "id"]), st.lists(_STEPS, min_size=3, max_size=9))
@settings(max_examples=examples(60), deadline=None)
def test_versions_come_back_as_they_were(mode: str, steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = Told(DeltaLog(Path(folder) / "t"), DeltaLog(Path(folder) / "clone"))
        first = pa.table({"id": [0, 1], "a": pa.array([1, 2], pa.int32()), "s": [{"x": 1, "y": "p"}, None]})
        told.log.write(first, options={**PROPERTIES, "delta.columnMapping.mode": mode})
        told.next_id = 2
        told.note()
        for kind, which in steps:
            if kind == "write":
                told.write(1 + which % 3)
            elif kind == "replace":
                told.replace(which)
            elif kind == "restore":
                wanted = which % len(told.versions)
                restore(told.log, version=wanted)
                assert state(told.log) == told.versions[wanted]
            elif kind == "clone":
                wanted = which % len(told.versions)
                deep_clone(told.log, told.clone, version=wanted, replace_existing=True)
                assert state(told.clone) == told.versions[wanted]
            else:
                told.change(kind, which)
            told.note()
        for version, found in told.versions.items():
            assert state(told.log, version) == found


TABLES = [
    case for case in cases() if case.feed and (case.mode == "name" or case.evolution == "mapping, rename")
]


@pytest.mark.parametrize("case", TABLES, ids=[case.name for case in TABLES])
def test_a_clone_follows_its_source_through_every_change_and_back(tmp_path: Path, case: Case) -> None:
    source, clone = make(case, tmp_path / "source"), DeltaLog(tmp_path / "clone")
    last = source.snapshot().version
    for version in (1, *range(2, last + 1), 1):
        deep_clone(source, clone, version=version, replace_existing=True)
        assert state(clone) == state(source, version)
        assert (
            clone.snapshot().metadata.partition_columns == source.snapshot(version).metadata.partition_columns
        )
        done = clone.snapshot().version
        assert clone.changes(done, done).schema.names[:-3] == clone.snapshot().schema.names


def test_changes_across_columns_that_are_gone_name_the_commit_and_both_sides_can_be_read(
    tmp_path: Path,
) -> None:
    log = make(Case("drop", "name", True), tmp_path)
    with pytest.raises(
        ChangeDataError, match="from version 0 to 1, and from version 2 to 4, separately"
    ) as refused:
        log.changes(0, 4)
    assert refused.value.condition == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    assert log.changes(0, 1).to_arrow().num_rows == 2
    assert log.changes(2, 4).to_arrow().num_rows > 0


def test_changes_of_files_with_other_names_of_columns_are_refused(tmp_path: Path) -> None:
    log = make(Case("rename", "name", True), tmp_path)
    optimize(log, OptimizeRequest(UNMAP))
    unmapped = log.snapshot().version
    with pytest.raises(ChangeDataError, match="column mapping was switched off"):
        log.changes(unmapped - 1, unmapped)
    for version in (unmapped - 1, unmapped):
        restore(log, version=version)
        assert state(log) == state(log, version)
        last = log.snapshot().version
        with pytest.raises(ChangeDataError, match="id, n, d have other names") as refused:
            log.changes(last, last).to_arrow()
        assert refused.value.condition == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
        source = open_source(tmp_path, startingVersion=str(last), readChangeFeed="true")
        start = source.initial_offset()
        with pytest.raises(ChangeDataError, match="have other names"):
            read(source, start, source.latest_offset(start, None))


def test_changes_over_column_mapping_that_keeps_the_names_are_read(tmp_path: Path) -> None:
    log = make(Case("mapping, rename", "none", True), tmp_path)
    restore(log, version=1)
    assert log.snapshot().mapping_mode == "none"
    last = log.snapshot().version
    gone = [row["id"] for row in log.changes(last, last).to_arrow().to_pylist()]
    assert sorted(gone) == [3, 4]
