"""MERGE without Spark does what delta-spark was recorded to do; only a MERGE of nothing makes no version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError

PROGRAMS = (
    Path(__file__).parents[4]
    / "engines"
    / "conformance"
    / "corpora"
    / "differential"
    / "programs"
    / "handwritten"
)
NAMES = [
    "merge_clause_order",
    "merge_errors",
    "merge_multiple_match",
    "merge_not_matched_by_source",
    "merge_null_keys",
    "merge_partitioned",
    "merge_schema_evolution",
    "merge_upsert",
]
_TYPES = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}
# Here it is told by name what cannot be evaluated, with one condition of this package.
_OTHER_CONDITIONS = {"UNSUPPORTED_EXPR_FOR_OPERATOR": "DELTA_MERGE_NEEDS_SPARK"}


def _table(frame: dict[str, Any]) -> pa.Table:
    fields = [text.split() for text in frame["schema"].split(",")]
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in fields])
    rows = [dict(zip(schema.names, row, strict=True)) for row in frame["rows"]]
    return pa.Table.from_pylist(rows, schema)


def _merge(log: DeltaLog, step: dict[str, Any]) -> None:
    merger = log.merge(_table(step["source"]), step["on"], "s", "t", bool(step.get("evolve")))
    for clause in step["clauses"]:
        do = clause["do"].removesuffix("_all")
        name = f"when_{clause['when']}_{clause['do']}"
        given = [] if do == "delete" or clause["do"] != do else [clause["set"]]
        getattr(merger, name)(*given, predicate=clause.get("cond"))
    merger.execute()


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_program_ends_as_with_delta_spark(name: str, tmp_path: Path) -> None:
    program = json.loads((PROGRAMS / f"{name}.json").read_text())
    log = DeltaLog(tmp_path)
    for step, expected in zip(program["ops"], program["expect"]["ops"], strict=True):
        if step["op"] == "write":
            partitions = step.get("partitionBy")
            log.write(_table(step["df"]), options={"partitionBy": partitions} if partitions else {})
        elif expected["ok"]:
            _merge(log, step)
        else:
            with pytest.raises(DeltaError) as raised:
                _merge(log, step)
            condition = expected["condition"]
            assert raised.value.condition == _OTHER_CONDITIONS.get(condition, condition), str(raised.value)
    table = program["expect"]["tables"]["t"]
    snapshot = log.snapshot()
    assert [[f.name, str(f.type)] for f in snapshot.schema] == [
        [column, {"bigint": "long", "int": "integer"}.get(kind, kind)] for column, kind in table["columns"]
    ]
    rows = [list(row.values()) for row in snapshot.scan().to_arrow().to_pylist()]
    assert sorted(map(repr, rows)) == sorted(map(repr, table["rows"]))
    assert _changes(log.history()[::-1]) == _changes(table["history"])


def _changes(history: list[dict[str, Any]]) -> list[tuple[str, dict[str, int]]]:
    """What commits did to rows, those that did nothing left out."""
    found = []
    for entry in history:
        metrics = entry.get("metrics") or entry.get("operationMetrics") or {}
        rows = {
            n: int(v)
            for n, v in metrics.items()
            if n.startswith("numTargetRows") and n != "numTargetRowsCopied"
        }
        if entry["operation"] != "MERGE" or any(rows.values()):
            found.append((entry["operation"], rows))
    return found
