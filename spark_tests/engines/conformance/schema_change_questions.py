"""What is asked of the tables of `schema_changes`, and what this package answers.

An answer is a table's columns and rows, or the condition of the error. What delta-spark answers is recorded in
`corpora/schema_changes`, by `spark_tests.engines.interop.record_schema_changes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.schema.types import StructType, schema_to_json
from spark_tests.behaviour.kernel.commands.streaming.streams import open_source, read
from spark_tests.engines.conformance.compare import without_internal_metadata
from spark_tests.engines.conformance.schema_changes import Case

Answer = dict[str, Any] | str | None
_PROPERTIES = ("delta.columnMapping.mode", "delta.enableChangeDataFeed", "delta.enableTypeWidening")


def questions(case: Case, last: int) -> list[str]:
    """What is asked of a table with versions 0 to `last`; the numbers are versions.

    Version 1 is that before the change, `last - 2` the change, or the last commit of it. Streams begin at a version
    and read all there is.
    """
    asked = ["rows 1", "clone 1", f"clone {last}", "stream 1"]
    asked += [f"restore {version}" for version in range(1, max(last - 2, 2))]
    if case.feed:
        asked += ["changes 1 1", "change_stream 1"]
        ends = [*range(2, last - 1), last]
        asked += [f"changes {start} {end}" for end in ends for start in range(1, end + 1) if start < last]
    return asked


def told(schema: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns, from the JSON of Spark's schema without Delta's own metadata, and rows in a fixed order."""
    columns = without_internal_metadata(schema)["fields"]
    return {"columns": [_column(c) for c in columns], "rows": sorted(json.dumps(_plain(row)) for row in rows)}


def _column(node: dict[str, Any]) -> str:
    comment = node["metadata"].get("comment")
    null = "" if node["nullable"] else " not null"
    return f"{node['name']} {_type(node['type'])}{null}" + (f" comment {comment}" if comment else "")


def _type(node: Any) -> str:
    if not isinstance(node, dict):
        return str(node)
    if node["type"] == "struct":
        return "struct<" + ", ".join(map(_column, node["fields"])) + ">"
    if node["type"] == "array":
        return f"array<{_type(node['elementType'])}>"
    return f"map<{_type(node['keyType'])}, {_type(node['valueType'])}>"


def _plain(row: dict[str, Any]) -> list[Any]:
    return [value for name, value in row.items() if name != "_commit_timestamp"]


def described(metadata: Metadata) -> dict[str, Any]:
    """What is told of a table besides its columns and rows."""
    properties = metadata.configuration
    return {
        "partitions": list(metadata.partition_columns),
        "properties": {name: properties[name] for name in _PROPERTIES if name in properties},
    }


def restored(
    case: Case, state: dict[str, Any], last: int, changes: Callable[[int, int], Answer]
) -> dict[str, Any]:
    """What is told of a restored table: its state, and its feed up to, and of, that commit."""
    feeds = {f"changes {start} {last}": changes(start, last) for start in (1, last)}
    return {**state, **(feeds if case.feed else {})}


class Package:
    """Answers questions about one table.

    Parameters
    ----------
    copy
        Makes a copy of the table, for what changes it.
    """

    def __init__(self, case: Case, path: Path, copy: Callable[[], Path]) -> None:
        self._case, self._path, self._copy = case, path, copy

    def answer(self, question: str) -> Answer:
        what, *versions = question.split()
        asked: Callable[..., Answer] = getattr(self, f"_{what}")
        return _tried(lambda: asked(*map(int, versions)))

    def _rows(self, version: int) -> Answer:
        return _state(DeltaLog(self._path), version)

    def _changes(self, start: int, end: int) -> Answer:
        return _feed(DeltaLog(self._path), start, end)

    def _clone(self, version: int) -> Answer:
        target = DeltaLog(self._copy().parent / "clone")
        shallow_clone(DeltaLog(self._path), target, version=version)
        return _state(target)

    def _restore(self, version: int) -> Answer:
        log = DeltaLog(self._copy())
        restore(log, version=version)
        last = log.snapshot().version
        return restored(
            self._case, _state(log), last, lambda start, end: _tried(lambda: _feed(log, start, end))
        )

    def _stream(self, version: int, **options: str) -> Answer:
        source = open_source(self._path, startingVersion=str(version), **options)
        at, rows = source.initial_offset(), []
        while (end := source.latest_offset(at, None)) != at:
            rows += read(source, at, end)
            at = end
        return _shown(source.schema, rows)

    def _change_stream(self, version: int) -> Answer:
        return self._stream(version, readChangeFeed="true")


def _tried(action: Callable[[], Answer]) -> Answer:
    try:
        return action()
    except DeltaError as error:
        return error.condition


def _feed(log: DeltaLog, start: int, end: int) -> Answer:
    feed = log.changes(start, end)
    return _shown(feed.schema, feed.to_arrow().to_pylist())


def _state(log: DeltaLog, version: int | None = None) -> dict[str, Any]:
    snapshot = log.snapshot(version)
    return {**_shown(snapshot.schema, snapshot.scan().to_arrow().to_pylist()), **described(snapshot.metadata)}


def _shown(schema: StructType, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return told(json.loads(schema_to_json(schema)), rows)
