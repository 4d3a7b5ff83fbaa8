"""The table that the tests of this folder damage, and what a reader may make of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.testing import Action, TableBuilder

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
IDS = [1, 2, 3, 4, 5, 6]


def rows(*ids: int) -> pa.Table:
    """Rows of the table, a name to each id."""
    return pa.table({"id": list(ids), "name": [f"name {i}" for i in ids]}, schema=SCHEMA)


def build(path: Path) -> TableBuilder:
    """A table of four versions: created empty, then the files (1, 2, 3), (4, 5) and (6)."""
    table = TableBuilder(path)
    table.create(SCHEMA, reader_features=["deletionVectors", "v2Checkpoint"])
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    table.append(rows(6))
    return table


def read_ids(table: TableBuilder, version: int | None = None) -> list[int]:
    """The ids of a version, in order."""
    found = DeltaLog(str(table.path)).snapshot(version=version).scan().to_arrow()
    return sorted(found.column("id").to_pylist())


def assert_refused(table: TableBuilder, *kinds: type[DeltaError], match: str | None = None) -> DeltaError:
    """The table must not be read; returns the error, which must be one of `kinds`."""
    with pytest.raises(kinds or DeltaError, match=match) as caught:
        read_ids(table)
    return caught.value


def assert_read_or_refused(table: TableBuilder, ids: list[int]) -> None:
    """Readers differ on such a table; ours may refuse it in its own words, or read exactly `ids`."""
    try:
        found = read_ids(table)
    except DeltaError:
        return
    assert found == ids


def add_line(table: TableBuilder, *ids: int) -> Action:
    """The `add` of a new file with these ids, not committed yet."""
    return table.write_file(rows(*ids))
