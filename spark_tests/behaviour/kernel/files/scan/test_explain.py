"""Explaining a scan: each live file with the rule that kept or dropped it."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from delta_ds.kernel.files.scan.explain import explain
from delta_ds.kernel.files.scan.skipping import Pruning, prune
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.types import INTEGER, LONG, STRING
from spark_tests.behaviour.kernel.files.scan.tables import MemoryFiles, struct

SCHEMA = struct(("p", INTEGER), ("id", LONG), ("s", STRING))
FILES = MemoryFiles(
    [
        '{"numRecords":2,"minValues":{"id":1},"maxValues":{"id":5},"nullCount":{"id":0}}',
        '{"numRecords":2,"minValues":{"id":6},"maxValues":{"id":9},"nullCount":{"id":0}}',
        None,
        None,
        '{"numRecords":0}',
    ],
    [{"p": "1"}, {"p": "1"}, {"p": "1"}, {"p": "2"}, {"p": "1"}],
)


def pruned(predicate: str | None) -> Pruning:
    bound = None if predicate is None else bind(parse_predicate(predicate), SCHEMA)
    return prune(
        FILES,  # type: ignore[arg-type]
        bound,
        schema=SCHEMA,
        partition_columns=["p"],
        mapping_mode="none",
        timezone="UTC",
    )


def test_each_file_is_named_with_its_rule() -> None:
    table = explain(FILES, pruned("p = 1 AND id < 6"))  # type: ignore[arg-type]
    assert table.column_names == ["path", "kept", "rule"]
    assert table.to_pylist() == [
        {"path": "f0", "kept": True, "rule": "may match"},
        {"path": "f1", "kept": False, "rule": "(id < 6L): min/max and null count"},
        {"path": "f2", "kept": True, "rule": "(id < 6L): no statistics on id"},
        {"path": "f3", "kept": False, "rule": "(p = 1): partition values"},
        {"path": "f4", "kept": False, "rule": "numRecords = 0"},
    ]


def test_without_predicate_all_files_are_kept() -> None:
    table = explain(FILES, pruned(None))  # type: ignore[arg-type]
    assert table["kept"].to_pylist() == [True] * 5
    assert set(table["rule"].to_pylist()) == {"may match"}


def test_rule_for_a_long_conjunct_is_cut() -> None:
    table = explain(FILES, pruned(f"id IN ({', '.join(map(str, range(100, 1000)))})"))  # type: ignore[arg-type]
    assert table["kept"].to_pylist() == [False, False, True, True, False]
    assert all(len(rule) < 300 for rule in table["rule"].to_pylist())


def test_text_counts_files_by_rule() -> None:
    assert str(explain(FILES, pruned("p = 1 AND id < 6"))).splitlines() == [  # type: ignore[arg-type]
        "2 of 5 files to read",
        "  skipped 1: (p = 1): partition values",
        "  skipped 1: numRecords = 0",
        "  skipped 1: (id < 6L): min/max and null count",
        "  kept 1: (id < 6L): no statistics on id",
        "  kept 1: may match",
    ]


def test_steps_add_up_to_all_files_and_bytes() -> None:
    found = explain(FILES, pruned("p = 1 AND id < 6"))  # type: ignore[arg-type]
    steps = found.steps.to_pydict()
    assert (sum(steps["files"]), sum(steps["bytes"])) == (found.num_files, found.size)
    read = [n for n, kept in zip(steps["bytes"], steps["kept"], strict=True) if kept]
    assert (sum(read), found.num_read) == (found.size_read, 2)


def test_explanation_is_its_table_to_whoever_takes_arrow_data() -> None:
    found = explain(FILES, pruned("p = 1"))  # type: ignore[arg-type]
    assert pa.table(found) == found.files
    assert found.slice(0, 1).to_pylist() == [{"path": "f0", "kept": True, "rule": "may match"}]
    assert len(found) == found.num_rows == 5
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError, match="nosuch"):
        _ = found.nosuch
