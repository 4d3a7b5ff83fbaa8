"""Columns with the names that commands give to their own: refused, as otherwise one is taken for the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, FILE, ROW, SOURCE

_SOURCE = pa.table({"id": [1], "x": [99]})
COMMANDS: dict[str, Callable[[DeltaLog], object]] = {
    "DELETE": lambda log: log.delete("id = 1"),
    "UPDATE": lambda log: log.update({"id": "id + 1"}),
    "MERGE": lambda log: log.merge(_SOURCE, "t.id = s.id", "s", "t").when_matched_delete().execute(),
}


@pytest.mark.parametrize("name", [CLAUSE, FILE, ROW, SOURCE, "__PyDelta_any"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_with_such_a_column_is_left_alone(tmp_path: Path, command: str, name: str) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2], name: [10, 20]}))
    with pytest.raises(UnsupportedOperationError) as raised:
        COMMANDS[command](log)
    for word in (f"the table has a column {name!r}", command, "Rename the column"):
        assert word in str(raised.value)
    assert log.snapshot().version == 0


def test_a_source_with_such_a_column_is_refused(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2]}))
    merger = log.merge(pa.table({"id": [3], SOURCE: [1]}), "t.id = s.id", "s", "t", merge_schema=True)
    with pytest.raises(UnsupportedOperationError, match=f"the source has a column '{SOURCE}'"):
        merger.when_not_matched_insert_all().execute()
    assert log.snapshot().version == 0
