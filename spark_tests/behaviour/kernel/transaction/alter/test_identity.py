"""SYNC IDENTITY: the high water mark, and what the history shows."""

from __future__ import annotations

import json
from pathlib import Path

from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.columns import sync_identity
from spark_tests.behaviour.kernel.transaction.alter.tables import action, made

COLUMN = {"delta.identity.start": 10, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": True}


def test_the_mark_goes_behind_the_values_and_the_history_has_the_column_as_it_was(tmp_path: Path) -> None:
    log = made(tmp_path, StructType((StructField("id", LONG, metadata=COLUMN),)))
    version = sync_identity(log, "id", 1001)
    assert version == 1
    (field,) = log.snapshot().schema
    assert field.metadata["delta.identity.highWaterMark"] == 1005
    info = action(log, version, "commitInfo")
    assert info["operation"] == "CHANGE COLUMN"
    assert json.loads(info["operationParameters"]["column"])["metadata"] == COLUMN


def test_a_mark_that_is_far_enough_is_left(tmp_path: Path) -> None:
    marked = {**COLUMN, "delta.identity.highWaterMark": 20}
    log = made(tmp_path, StructType((StructField("id", LONG, metadata=marked),)))
    assert sync_identity(log, "id", 20) is None
    assert sync_identity(log, "id", 15) is None
    assert sync_identity(log, "id", None) is None
