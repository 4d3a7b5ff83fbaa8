"""Whatever is done to the files of a log, every public call ends with an answer or a `DeltaError`.

Not a word is said here of right rows: `test_fuzz.py` compares them. What is damaged here is a table with all that a log
can hold: every kind of checkpoint, deletion vectors, domains, row ids, in-commit timestamps and the change feed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.testing import CheckpointKind, TableBuilder, remove_action
from spark_tests.full_form import FULL

FEATURES = ["deletionVectors", "v2Checkpoint", "timestampNtz"]
WRITER_FEATURES = [
    "appendOnly", "invariants", "changeDataFeed", "domainMetadata", "clustering", "rowTracking", "inCommitTimestamp",
]  # fmt: skip
PROPERTIES = {
    "delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version",
}  # fmt: skip
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.date32()),
        ("s", pa.struct([("t", pa.string()), ("l", pa.list_(pa.float64()))])),
    ]
)
KINDS: tuple[CheckpointKind, ...] = ("v1", "v2-parquet", "v2-json")


def build(kind: CheckpointKind) -> Path:
    """Six versions, a checkpoint of the fourth, a compaction of the last two, a checksum."""
    table = TableBuilder(tempfile.mkdtemp(prefix="every-"))
    ids = iter(range(0, 10_000, 100))

    def file(*values: int) -> dict[str, Any]:
        rows = pa.table(
            {"id": list(values), "s": [{"t": "x", "l": [1.0]} for _ in values]},
            schema=pa.schema([SCHEMA.field("id"), SCHEMA.field("s")]),
        )
        add = table.write_file(rows, partition_values={"part": f"2024-01-0{values[0]}"})
        add["add"] |= {"baseRowId": next(ids), "defaultRowCommitVersion": 1, "tags": {"k": "v"}}
        return add

    def commit(*actions: dict[str, Any]) -> None:
        table.commit(*actions, inCommitTimestamp=1_700_000_000_000 + table.version)

    domains = {
        "delta.clustering": {"clusteringColumns": [["id"]]},
        "delta.rowTracking": {"rowIdHighWaterMark": 9999},
    }
    table.create(
        SCHEMA, partition_columns=["part"], properties=PROPERTIES, reader_features=FEATURES,
        writer_features=[*FEATURES, *WRITER_FEATURES],
    )  # fmt: skip
    one, two, three = file(1, 2, 3), file(2, 4), file(3)
    first = table.commit_file(0)
    first.write_bytes(
        first.read_bytes().replace(b'{"timestamp"', b'{"inCommitTimestamp":1700000000000,"timestamp"', 1)
    )
    commit(one, two, *({"domainMetadata": {"domain": d, "configuration": json.dumps(c), "removed": False}}
                       for d, c in domains.items()))  # fmt: skip
    commit(remove_action(two), three, {"txn": {"appId": "app", "version": 1, "lastUpdated": 1}})
    commit(remove_action(one), {"add": {**one["add"], "deletionVector": table.deletion_vector([1])}})
    table.checkpoint(kind)
    commit(file(4))
    commit(file(5))
    table.compact(4, 5)
    table.checksum()
    return table.path


TEMPLATES = {kind: build(kind) for kind in KINDS}


def calls(path: Path) -> list[Callable[[], Any]]:
    """What a program may do with a table, the writing ones last."""
    log = DeltaLog(path)

    def scan(predicate: str | None, **how: Any) -> Any:
        found = log.snapshot().scan(predicate, **how)
        return found.explain(), found.slices(), found.to_arrow()

    return [
        lambda: (log.snapshot(), log.snapshot().metadata.schema, repr(log.snapshot())),
        lambda: log.snapshot().detail(),
        lambda: log.snapshot().files().to_pylist(),
        lambda: log.snapshot(version=3).scan().to_arrow(),
        lambda: log.snapshot(timestamp=1_700_000_000_002),
        lambda: scan(None, metadata_columns=("file_path", "row_id", "row_commit_version")),
        lambda: scan("id > 2 and part >= date'2024-01-02'"),
        lambda: scan("s.t = 'x' or part is null", columns=["id"]),
        lambda: log.history(),
        lambda: log.changes(1).to_arrow(),
        lambda: log.changes(1, starting_timestamp=1_700_000_000_002).to_arrow(),
        lambda: (log.snapshot().txns, log.snapshot().domains, log.snapshot().clustering_columns),
        lambda: vacuum(log, dry_run=True),
        lambda: vacuum(log, mode="lite", dry_run=True),
        lambda: log.checkpoint(),
        lambda: log.write(
            pa.table({"id": [9], "part": [None]}, schema=pa.schema([SCHEMA.field(0), SCHEMA.field(1)]))
        ),
        lambda: log.start_transaction().remove_live().commit("DELETE"),
    ]


def attempt(call: Callable[[], Any]) -> None:
    with suppress(DeltaError):
        call()


def check(kind: CheckpointKind, damage: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory(prefix="every-") as scratch:
        path = Path(scratch) / "table"
        shutil.copytree(TEMPLATES[kind], path)
        damage(path / "_delta_log")
        for call in calls(path):
            attempt(call)


def log_files(kind: CheckpointKind) -> list[str]:
    log = TEMPLATES[kind] / "_delta_log"
    return sorted(str(file.relative_to(log)) for file in log.rglob("*") if file.is_file())


@pytest.mark.parametrize("kind", KINDS)
def test_without_damage_every_call_has_an_answer(kind: CheckpointKind, tmp_path: Path) -> None:
    shutil.copytree(TEMPLATES[kind], tmp_path / "table")
    for call in calls(tmp_path / "table"):
        call()


BOUNDED = settings(
    max_examples=1500 if FULL else 12,
    deadline=None,
    derandomize=not FULL,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

WORDS = [
    "", "null", "NaN", "-Infinity", "1e400", "true", "-1", "0", "9" * 19, "9" * 30, "9" * 400, "..", "../x", "/", "%",
    "%ff", "s3://bucket/x", "file:///etc", "a" * 3000, "\x00", "é", "10000-01-01", "-5877641-06-23", "2024-13-45",
    "{}", "[]", "[" * 3000, '{"a":' * 3000, "decimal(39,2)", "decimal(38,38)", "map", "struct", "u", "p", "i", "id",
]  # fmt: skip
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([-1, 0, 1, 2**31, 2**53, 2**63, 10**30]),
    st.floats(),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=2),
    st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS), max_size=2),
)


def deep(levels: int) -> str:
    start, end = '{"type":"struct","fields":[{"name":"id","type":', ',"nullable":true,"metadata":{}}]}'
    return start * levels + '"long"' + end * levels


def mutate(node: Any, draw: Callable[[Any], Any]) -> None:
    """Change one value somewhere in an action, also inside JSON that stands in a text."""
    key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    value = node[key]
    if isinstance(value, str) and value[:2] in ('{"', "[[") and len(value) < 2000 and draw(st.integers(0, 3)):
        inner = json.loads(value)
        if inner:
            mutate(inner, draw)
            node[key] = json.dumps(inner)
            return
    if isinstance(value, (dict, list)) and value and draw(st.integers(0, 5)):
        mutate(value, draw)
    elif isinstance(node, dict) and draw(st.integers(0, 4)) == 0:
        del node[key]
    else:
        node[key] = draw(VALUES)


@BOUNDED
@given(st.sampled_from(KINDS), st.data())
def test_values_that_make_no_sense(kind: CheckpointKind, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([n for n in log_files(kind) if not n.endswith("parquet")]))

    def damage(log: Path) -> None:
        file = log / name
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        for _ in range(data.draw(st.integers(1, 2))):
            mutate(data.draw(st.sampled_from([line for line in lines if line] or [{"x": 1}])), data.draw)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    check(kind, damage)


@BOUNDED
@given(st.sampled_from(KINDS), st.data())
def test_bytes_that_make_no_sense(kind: CheckpointKind, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(log_files(kind)))

    def damage(log: Path) -> None:
        content = bytearray((log / name).read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            # The ends of Parquet files say most.
            end = data.draw(st.booleans())
            at = (
                data.draw(st.integers(0, min(400, len(content))))
                if end
                else data.draw(st.integers(0, len(content)))
            )
            at = len(content) - at if end else at
            content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        (log / name).write_bytes(content)

    check(kind, damage)


@BOUNDED
@given(st.sampled_from(KINDS), st.data())
def test_names_that_make_no_sense(kind: CheckpointKind, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(log_files(kind)))
    number = data.draw(st.sampled_from([0, 1, 3, 4, 5, 6, 7, 10**12, 2**63, 10**20 - 1]))
    suffix = data.draw(
        st.sampled_from(
            ["json", "crc", "checkpoint.parquet", f"{number:020d}.compacted.json", "checkpoint.a.json",
             "checkpoint.a.parquet", "checkpoint.0000000001.0000000002.parquet",
             "checkpoint.9999999999.9999999999.parquet"]
        )
    )  # fmt: skip

    def damage(log: Path) -> None:
        target = log / f"{number:020d}.{suffix}"
        if data.draw(st.booleans()):
            os.replace(log / name, target)
        elif (log / name) != target:
            shutil.copy(log / name, target)

    check(kind, damage)


@BOUNDED
@given(st.sampled_from(["v1", "v2-parquet"]), st.data())
def test_checkpoints_of_other_types(kind: CheckpointKind, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([n for n in log_files(kind) if n.endswith("parquet")]))

    def other(array: pa.ChunkedArray) -> pa.ChunkedArray:
        """The column with another type somewhere inside."""
        rows = array.to_pylist()
        kind = array.type
        if pa.types.is_struct(kind) and data.draw(st.integers(0, 3)):
            field = data.draw(st.sampled_from(list(kind)))
            inner = other(pa.chunked_array([pa.array([row and row[field.name] for row in rows], field.type)]))
            children = [
                inner.combine_chunks() if f.name == field.name
                else pa.array([row and row[f.name] for row in rows], f.type)
                for f in kind
            ]  # fmt: skip
            mask = pa.array([row is None for row in rows])
            return pa.chunked_array([pa.StructArray.from_arrays(children, [f.name for f in kind], mask=mask)])
        value = data.draw(
            st.sampled_from(
                [7, -1, 2**62, "x", "../x", b"\xff\xee", 1.5, True, [1], {"a": 1}, [("k", "v")], None]
            )
        )
        found = [None if row is None and data.draw(st.booleans()) else value for row in rows]
        of = pa.map_(pa.string(), pa.string()) if value == [("k", "v")] else None
        return pa.chunked_array([pa.array(found, of)])

    def damage(log: Path) -> None:
        table = pq.read_table(log / name)
        column = data.draw(st.sampled_from(table.column_names))
        changed = other(table[column])
        pq.write_table(table.set_column(table.column_names.index(column), column, changed), log / name)

    check(kind, damage)


@pytest.mark.parametrize("value", [None, -1, 10**30, float("nan"), "x", [1], {"a": {"b": 1}}, True])
@pytest.mark.parametrize("place", ["metaData.createdTime", "metaData.name", "txn.version", "add.stats"])
def test_values_of_another_type_do_not_break_what_is_written_next(place: str, value: Any) -> None:
    action, field = place.split(".")

    def damage(log: Path) -> None:
        for file in log.glob("*.json"):
            lines = [json.loads(line) for line in file.read_bytes().splitlines()]
            for line in lines:
                if action in line:
                    line[action][field] = value
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for stale in log.glob("*checkpoint*"):
            stale.unlink()

    check("v1", damage)


@pytest.mark.parametrize("levels", [50, 99, 200, 400, 900, 20_000])
def test_schemas_of_any_depth(levels: int) -> None:
    def damage(log: Path) -> None:
        file = log / f"{0:020d}.json"
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        for line in lines:
            if "metaData" in line:
                line["metaData"] |= {"schemaString": deep(levels), "partitionColumns": []}
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for stale in log.glob("*checkpoint*"):
            stale.unlink()

    check("v1", damage)


@pytest.mark.parametrize("levels", [50, 200, 300, 400, 600, 900, 3000])
def test_predicates_of_any_depth(levels: int) -> None:
    snapshot = DeltaLog(TEMPLATES["v1"]).snapshot()
    for text in (
        "(" * levels + "id > 1" + ")" * levels,
        "not " * levels + "id > 1",
        " and ".join(["id > 1"] * levels),
        "(id > 1 or (part is null and " * levels + "id > 1" + "))" * levels,
        "id + " * levels + "1 > 1",
        "-" * levels + " id > 1",
        "coalesce(" * levels + "id" + ")" * levels + " > 1",
        "case when id > 1 then " * levels + "true" + " else false end" * levels,
        f"id in ({','.join(map(str, range(levels)))})",
    ):
        attempt(lambda text=text: (snapshot.scan(text).explain(), snapshot.scan(text).to_arrow()))  # type: ignore[misc]
