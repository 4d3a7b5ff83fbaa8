"""VACUUM by an inventory: which rows count, and which columns it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.vacuum_tables import (
    HOUR,
    NOW,
    add,
    age,
    commit,
    files,
    new_table,
    put,
    texts_of,
)

OLD = NOW - 1000 * HOUR
COLUMNS = ["path", "length", "isDir", "modificationTime"]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    table = new_table(tmp_path / "t 1")
    for name in ("live", "old", "p=1/a b", "unlisted", "_hidden"):
        put(table.path, name)
    commit(table, 900, add("live"))
    (table.path / "empty").mkdir()
    age(table.path / "empty", 1000)
    return table


def rows(table: TableBuilder, start: str = "") -> list[tuple[Any, ...]]:
    root = f"{start}{table.path}"
    return [
        (f"{root}/live", 5, False, OLD),
        (f"{root}/old", 7, False, OLD),
        (f"{root}/p=1", 0, True, OLD),
        (f"{root}/p=1/a b", 5, False, OLD),
        (f"{root}/_hidden", 5, False, OLD),
        (f"{root}/empty", 0, True, OLD),
        (f"{root}/twice", 5, False, OLD),
        (f"{root}/twice", 5, False, NOW),
        (f"{root}/unknown", 5, False, None),
        (f"{root}2/other table", 5, False, OLD),
        (f"{root}/../other", 5, False, OLD),
        (root, 0, True, OLD),
    ]


def as_arrow(table: TableBuilder) -> pa.Table:
    return pa.table(
        {name: list(column) for name, column in zip(COLUMNS, zip(*rows(table), strict=True), strict=True)}
    )


@pytest.mark.parametrize(
    "form", ["tuples", "mappings", "generator", "arrow", "reader", "large", "file:", "file://"]
)
def test_an_inventory_stands_for_a_listing(
    table: TableBuilder, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    given: Any = rows(table, form if form.startswith("file") else "")
    if form == "mappings":
        given = [dict(zip(COLUMNS, row, strict=True), more=1) for row in given]
    elif form == "generator":
        given = iter(given)
    elif form in ("arrow", "reader", "large"):
        given = as_arrow(table)
        if form == "reader":
            given = given.to_reader()
        if form == "large":
            given = given.set_column(0, "path", given["path"].cast(pa.large_string()))
    result = vacuum(DeltaLog(table.path), now_ms=NOW, inventory=given)
    assert texts_of(result.paths) == {"old", "p=1/a b"}
    assert (result.num_bytes, result.folders) == (12, ("empty",))
    assert files(table.path) == {"live", "unlisted", "_hidden"}
    assert "inventory_rows_outside" in caplog.text
    assert not (table.log / "_last_vacuum_info").exists()


def test_an_empty_inventory_deletes_nothing(table: TableBuilder) -> None:
    assert vacuum(DeltaLog(table.path), now_ms=NOW, inventory=[]).num_files == 0


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"path": ["a"]}),
        pa.table({"path": ["a"], "length": [1], "isDir": [0], "modificationTime": [1]}),
        pa.table({"path": ["a"], "length": [1.5], "isDir": [False], "modificationTime": [1]}),
        [("a", 1, False)],
        [("a", 1, False, 1), ("a", 1, False)],
        [{"path": "a"}],
        [("a", 1, 0, 1)],
        [("a", True, False, 1)],
        [(1, 1, False, 1)],
    ],
)
def test_other_columns_are_refused(table: TableBuilder, given: Any) -> None:
    with pytest.raises(InvalidOptionError) as error:
        vacuum(DeltaLog(table.path), now_ms=NOW, inventory=given)
    assert error.value.condition == "DELTA_INVALID_INVENTORY_SCHEMA"
    assert DeltaLog(table.path).snapshot().version == 1
