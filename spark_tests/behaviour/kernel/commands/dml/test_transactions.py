"""Commands that count as a transaction of an application: done once, also where nothing matched the first time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog

_SOURCE = pa.table({"id": [50]})
_ONCE = ("load", 1)
COMMANDS: dict[str, Callable[[DeltaLog], int | None]] = {
    "delete": lambda log: log.delete("id = 50", txn=_ONCE).version,
    "delete of partitions": lambda log: log.delete("p = 'z'", txn=_ONCE).version,
    "update": lambda log: log.update({"v": "9"}, predicate="id = 50", txn=_ONCE).version,
    "merge": lambda log: (
        log.merge(_SOURCE, "t.id = s.id", "s", "t", txn=_ONCE).when_matched_delete().execute().version
    ),
}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_found_nothing_is_not_done_again(tmp_path: Path, command: str, vectors: str) -> None:
    log = DeltaLog(tmp_path)
    rows = pa.table({"id": [1], "p": ["a"], "v": [0]})
    log.write(rows, options={"partitionBy": "p", "delta.enableDeletionVectors": vectors})
    files = sorted(tmp_path.rglob("*.parquet"))
    assert COMMANDS[command](log) == 1
    assert sorted(tmp_path.rglob("*.parquet")) == files
    log.write(pa.table({"id": [50], "p": ["z"], "v": [0]}))
    assert COMMANDS[command](log) is None
    assert log.snapshot().version == 2
    assert sorted(log.snapshot().scan().to_arrow()["id"].to_pylist()) == [1, 50]
    assert set(log.snapshot().scan().to_arrow()["v"].to_pylist()) == {0}


@pytest.mark.parametrize("command", ["delete", "update", "merge"])
def test_an_empty_table_records_the_transaction_too(tmp_path: Path, command: str) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "p": ["a"], "v": [0]}).slice(1))
    assert COMMANDS[command](log) == 1
    assert COMMANDS[command](log) is None
