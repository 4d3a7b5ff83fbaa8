"""Every way of writing, asked the same questions: what is written, read back by hand from log and Parquet files.

A cell is an option or a guard of a table, and a way of writing. What delta-spark left in the table for each is recorded
in `corpora/writes`, where `cases.py` says what is asked, and `accepted.json` where this package is meant to differ.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from delta_ds.records import dataclass
from spark_tests.engines.conformance.corpora import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = ("options", "guards")
# What the package keeps in a table's properties for itself.
_INTERNAL = ("delta.columnMapping", "delta.feature.", "delta.rowTracking.materialized")
# What a refused write leaves is the table as it was, whose last commit tells nothing.
_OF_COMMITS = ("operation", "files", "dataChange", "userMetadata")
_NAMED = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")

Outcome = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One question.

    Attributes
    ----------
    part, name
        `options` or `guards`, and the option or guard and the way.
    query
        The rows, in SQL.
    options, settings
        Of the call, and of the session.
    times
        How often it is written.
    table
        The statements that make the table first; empty for none.
    call
        Gets the session, the frame, the options, the name of the table and its folder.
    """

    part: str
    name: str
    query: str
    options: Mapping[str, str]
    settings: Mapping[str, str]
    times: int
    table: Sequence[str]
    call: Callable[..., None]

    @property
    def by_path(self) -> bool:
        return "| save " in self.name

    @property
    def asks_for_codec(self) -> bool:
        return "codec" in self.name or self.name.startswith("compression")


def cells() -> Iterator[Cell]:
    """All cells that have a record."""
    spec = importlib.util.spec_from_file_location("writes_cases", corpus("writes") / "cases.py")
    assert spec is not None and spec.loader is not None
    asked = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(asked)
    for option, (query, options, settings, times) in asked.OPTIONS.items():
        for way, (needs_table, call) in asked.WAYS.items():
            table = asked.BASE if needs_table else ()
            yield Cell("options", f"{option} | {way}", query, options, settings, times, table, call)
    for guard, (table, query, *more) in asked.GUARDS.items():
        options, settings = ([*more, {}, {}])[:2]
        for way, call in asked.GUARD_WAYS.items():
            name = f"{guard} | {way}"
            yield Cell("guards", name, query, options, settings, 1, asked.TABLES[table], call)


@cache
def recorded(part: str) -> dict[str, Outcome]:
    """What delta-spark did, by the names of cells."""
    found: dict[str, Outcome] = json.loads((corpus("writes") / "recorded" / f"{part}.json").read_text())
    return found


def run(spark: SparkSession, cell: Cell, root: Path, number: int) -> Outcome:
    """Write, and look at the table.

    Parameters
    ----------
    root
        Where tables go; the current schema of the session lies in its folder `schema`.
    number
        Another one for each cell.
    """
    table = f"{cell.part}_{number}"
    folder = root / table
    if cell.table:
        for statement in cell.table:
            spark.sql(statement.format(b=f"delta.`{folder}`"))
        if not cell.by_path:
            spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{folder}'")
    elif not cell.by_path:
        folder = root / "schema" / table
    frame: Any = spark.sql(cell.query)
    frame.view = f"source_{table}"
    with suppress(Exception):  # a frame with a column twice is no view: its ways by SQL fail alike
        frame.createOrReplaceTempView(frame.view)
    try:
        return _written(spark, cell, frame, table, folder)
    finally:
        spark.catalog.dropTempView(frame.view)
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        shutil.rmtree(folder, ignore_errors=True)


def _written(spark: SparkSession, cell: Cell, frame: Any, table: str, folder: Path) -> Outcome:
    for key, value in cell.settings.items():
        spark.conf.set(key, value)

    def once() -> str:
        try:
            cell.call(spark, frame, dict(cell.options), table, str(folder))
        except Exception as error:
            return _condition(error)
        return "ok"

    try:
        out = [once() for _ in range(cell.times)]
    finally:
        for key in cell.settings:
            spark.conf.unset(key)
    return {"out": out, "state": state(folder, cell.asks_for_codec and out[-1] == "ok")}


def _condition(error: Exception) -> str:
    name = getattr(error, "getCondition", lambda: None)()
    inside = _NAMED.search(str(error))
    return name or (inside[1] if type(error).__name__ == "Py4JJavaError" and inside else type(error).__name__)


def state(folder: Path, codec_too: bool) -> Outcome | str:
    """What is in a table, replayed from its JSON commits."""
    commits = sorted(folder.glob("_delta_log/" + "[0-9]" * 20 + ".json"))
    if not commits:
        return "no table"
    live: dict[str, Any] = {}
    transactions: dict[str, int] = {}
    metadata: dict[str, Any] = {}
    adds: list[Any] = []
    info: dict[str, Any] = {}
    for commit in commits:
        adds, info = [], {}
        for action in map(json.loads, commit.read_text().splitlines()):
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
                adds.append(action["add"])
            live.pop(action.get("remove", {}).get("path"), None)
            metadata = action.get("metaData", metadata)
            if "txn" in action:
                transactions[action["txn"]["appId"]] = action["txn"]["version"]
            info = action.get("commitInfo", info)
    schema = json.loads(metadata["schemaString"])["fields"]
    found = {
        "versions": len(commits),
        "rows": _rows(folder, live.values(), schema),
        "schema": [[f["name"], json.dumps(_shape(f["type"])), f["nullable"]] for f in schema],
        "partitions": metadata["partitionColumns"],
        "properties": {
            key: value
            for key, value in sorted(metadata["configuration"].items())
            if not key.startswith(_INTERNAL)
        },
        "transactions": transactions,
        "userMetadata": info.get("userMetadata"),
        "operation": info.get("operation"),
        "files": len(adds),
        "dataChange": sorted({str(add["dataChange"]) for add in adds}),
    }
    if codec_too:
        groups = [pq.read_metadata(folder / unquote(add["path"])).row_group(0) for add in adds]
        found["codec"] = sorted({group.column(0).compression for group in groups})
    return found


def _rows(folder: Path, files: Any, schema: list[dict[str, Any]]) -> list[str]:
    names = {f["metadata"].get("delta.columnMapping.physicalName", f["name"]): f["name"] for f in schema}
    rows = []
    for add in files:
        for row in pq.ParquetFile(folder / unquote(add["path"])).read().to_pylist():
            row |= add["partitionValues"]
            if add.get("deletionVector"):
                row |= {"deletion vector": add["deletionVector"]["cardinality"]}
            named = {names.get(key, key): value for key, value in row.items()}
            rows.append(json.dumps(named, sort_keys=True, default=str))
    return sorted(rows)


def _shape(kind: Any) -> Any:
    """A type without what column mapping adds to nested fields."""
    if not isinstance(kind, dict):
        return kind

    def part(key: str, value: Any) -> Any:
        if key != "fields":
            return _shape(value)
        return [{"name": f["name"], "type": _shape(f["type"]), "nullable": f["nullable"]} for f in value]

    return {key: part(key, value) for key, value in kind.items()}


def difference(cell: Cell, ours: Outcome) -> str | None:
    """How an outcome differs from the record; None where it does not, or as it should."""
    theirs = recorded(cell.part)[cell.name]
    told = _difference(ours, theirs)
    return None if told is None or _is_accepted(cell, ours) else told


def _difference(ours: Outcome, theirs: Outcome) -> str | None:
    wanted = named(theirs)
    if ours["out"] != wanted:
        return f"{ours['out']}, delta-spark {wanted}"
    a, b = ours["state"], theirs["state"]
    if isinstance(a, str) or isinstance(b, str):
        return None if a == b else f"{a}, delta-spark {b}"
    a, b = {**a, "rows": _plain(a["rows"])}, {**b, "rows": _plain(b["rows"])}
    ignored = () if wanted[-1] == "ok" else _OF_COMMITS
    lines = [
        f"{key} {a.get(key)}, delta-spark {b[key]}"
        for key in b
        if key not in ignored and a.get(key) != b[key]
    ]
    return "; ".join(lines) or None


def named(theirs: Outcome) -> list[str]:
    """Conditions of a record; an exception of Java without a class in Python says its own in its text."""
    inside = _NAMED.search(theirs.get("message", ""))
    return [inside[1] if name == "Py4JJavaError" and inside else name for name in theirs["out"]]


def _plain(rows: list[str]) -> list[str]:
    """Rows whatever the files are like: a null may be no column, a timestamp INT96; delta-spark marks rows of feeds."""

    def plain(row: str) -> str:
        values = json.loads(row.replace("+00:00", ""))
        kept = {key: value for key, value in values.items() if value is not None and key != "__is_cdc"}
        return json.dumps(kept, sort_keys=True)

    return sorted(map(plain, rows))


def _is_accepted(cell: Cell, ours: Outcome) -> bool:
    rules = json.loads((corpus("writes") / "accepted.json").read_text())
    for rule in rules:
        if rule["part"] == cell.part and any(fnmatch.fnmatchcase(cell.name, each) for each in rule["cells"]):
            return ours["out"][-1] in rule["out"]
    return False
