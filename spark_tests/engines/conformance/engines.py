"""The readers that a yardstick can run: what one has to answer, and the kernel as one of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

import pyarrow as pa

from delta_ds import exceptions as errors
from spark_tests.engines.conformance import compare


@dataclass(frozen=True, slots=True)
class Filtered:
    """What a reader does with a filter; None is what was not asked for or cannot be known.

    `files` counts the data files it means to open; `uncounted` says why there is no such number.
    """

    files: int | None
    rows: pa.Table | None
    uncounted: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as an engine showed it; `kind` None is one that is not of this package."""

    kind: type[errors.DeltaError] | None
    condition: str | None
    text: str


class OpenTable(Protocol):
    """One table under one engine. Each method may raise; `Engine.failure` says what the error was.

    `notes` counts, by the reason, the reads that another path than the engine's own had to serve.
    """

    notes: Counter[str]

    def open(self) -> None:
        """Do what comes before reading data: open the latest version and plan a full scan of it."""

    def state(self, version: int | None) -> dict[str, Any]:
        """The facts of a version under the keys of a recorded read, and `version`, `txns`, `domains`."""

    def history(self) -> dict[int, tuple[int, str | None]]:
        """The time in ms and the operation of each version that the history shows."""

    def rows(self, version: int | None, encodings: Mapping[str, str]) -> pa.Table:
        """All rows of a version, encoded columns as text."""

    def row_ids(self, version: int, encodings: Mapping[str, str]) -> pa.Table:
        """All rows of a version, encoded columns as text, and the columns `__row_id`, `__row_commit_version`."""

    def changes(self, starting: int, ending: int, encodings: Mapping[str, str]) -> pa.Table:
        """The change feed between two versions, both inclusive."""

    def version_at(self, timestamp_ms: int) -> int:
        """The version that time travel to a moment reads."""

    def filtered(self, predicate: str, scan: bool) -> Filtered:
        """Plan, and if asked for scan, the latest version under a Spark SQL filter."""


class Engine(Protocol):
    name: str

    def table(self, path: str, zone: str) -> OpenTable:
        """A table to read under a session time zone; touches nothing yet."""

    def failure(self, error: Exception) -> Failure:
        """What an error that a method raised shows to a user."""

    def close(self) -> None:
        """Give back what the engine holds."""


class KernelEngine:
    """The kernel's public API, in this process."""

    name = "kernel"

    def table(self, path: str, zone: str) -> OpenTable:
        return KernelTable(path, zone)

    def failure(self, error: Exception) -> Failure:
        kind = type(error) if isinstance(error, errors.DeltaError) else None
        text = f"{type(error).__name__}: {error}"
        return Failure(kind, getattr(error, "condition", None), text)

    def close(self) -> None:
        return None


class KernelTable:
    def __init__(self, path: str, zone: str) -> None:
        from delta_ds import DeltaLog

        self._open: Callable[[], Any] = lambda: DeltaLog(path)
        self._timezone = zone
        self.notes: Counter[str] = Counter()

    def _snapshot(self, version: int | None) -> Any:
        return self._open().snapshot(version=version)

    def open(self) -> None:
        self._snapshot(None).files()

    def state(self, version: int | None) -> dict[str, Any]:
        return snapshot_state(self._snapshot(version))

    def history(self) -> dict[int, tuple[int, str | None]]:
        return {e["version"]: (milliseconds(e["timestamp"]), e["operation"]) for e in self._open().history()}

    def rows(self, version: int | None, encodings: Mapping[str, str]) -> pa.Table:
        snapshot = self._snapshot(version)
        rows = snapshot.scan(timezone=self._timezone).to_arrow()
        return compare.encode(rows, snapshot.schema, dict(encodings))

    def row_ids(self, version: int, encodings: Mapping[str, str]) -> pa.Table:
        wanted = ("row_id", "row_commit_version")
        snapshot = self._snapshot(version)
        scan = snapshot.scan(timezone=self._timezone, metadata_columns=wanted)
        return compare.encode(lift_metadata(scan.to_arrow()), snapshot.schema, dict(encodings))

    def changes(self, starting: int, ending: int, encodings: Mapping[str, str]) -> pa.Table:
        rows = self._open().changes(starting, ending, timezone=self._timezone).to_arrow()
        return compare.encode(rows, self._snapshot(ending).schema, dict(encodings)) if encodings else rows

    def version_at(self, timestamp_ms: int) -> int:
        return int(self._open().snapshot(timestamp=timestamp_ms).version)

    def filtered(self, predicate: str, scan: bool) -> Filtered:
        planned = self._snapshot(None).scan(predicate=predicate, timezone=self._timezone)
        return Filtered(planned.files().num_rows, planned.to_arrow() if scan else None)


def snapshot_state(snapshot: Any) -> dict[str, Any]:
    """The recorded facts of a kernel snapshot, by the keys of the record."""
    from delta_ds.kernel.format.schema.types import schema_to_json

    files = snapshot.files()
    vectors = [v for v in files.column("deletionVector").to_pylist() if v is not None]
    protocol, metadata = snapshot.protocol, snapshot.metadata
    return {
        "version": snapshot.version,
        "timestamp": snapshot.timestamp,
        "files": files.num_rows,
        "active_files": sorted(files.column("path").to_pylist()),
        "files_with_dv": len(vectors),
        "dv_cardinality": sum(v["cardinality"] for v in vectors),
        "schema": compare.without_internal_metadata(json.loads(schema_to_json(snapshot.schema))),
        "partition_columns": list(snapshot.partition_columns),
        "properties": dict(snapshot.properties),
        "min_reader": protocol.min_reader,
        "min_writer": protocol.min_writer,
        "reader_features": _sorted(protocol.reader_features),
        "writer_features": _sorted(protocol.writer_features),
        "metadata_id": metadata.id,
        "table_name": metadata.name,
        "table_description": metadata.description,
        "txns": dict(snapshot.txns),
        "domains": dict(snapshot.domains),
    }


def milliseconds(moment: datetime) -> int:
    """An aware datetime as ms since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def _sorted(features: frozenset[str] | None) -> list[str] | None:
    return None if features is None else sorted(features)


def lift_metadata(rows: pa.Table) -> pa.Table:
    """Replace the struct column `_metadata` by one column `__<name>` for each of its fields."""
    metadata = rows.column("_metadata").combine_chunks()
    rows = rows.drop_columns(["_metadata"])
    for field, values in zip(metadata.type, metadata.flatten(), strict=True):
        rows = rows.append_column(f"__{field.name}", values)
    return rows
