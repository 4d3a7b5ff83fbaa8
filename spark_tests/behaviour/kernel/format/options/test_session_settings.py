"""Settings of a session, as an option of a write."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError, InvariantViolationError, PredicateError
from delta_ds.kernel.format.features import DELETION_VECTORS
from delta_ds.kernel.format.options.settings import (
    AUTO_COMPACT_PREFIX,
    CONSTRAINT_CHECK,
    DATA_COLUMNS,
    DEFAULTS_PREFIX,
    SETTINGS_OPTION,
    default_properties,
    settings_for_tasks,
)

ROWS = pa.table({"id": [1]})


def test_new_tables_take_defaults_where_the_write_says_nothing_and_old_ones_do_not(tmp_path: Path) -> None:
    said = {
        "appendOnly": "true",
        "checkpointInterval": "7",
        "feature.deletionVectors": "supported",
        "mine": "1",
    }
    settings = json.dumps({DEFAULTS_PREFIX + name: text for name, text in said.items()})
    log = DeltaLog(tmp_path / "new")
    log.write(ROWS, options={SETTINGS_OPTION: settings, "delta.checkpointInterval": "3"})
    assert log.snapshot().properties == {"delta.appendOnly": "true", "delta.checkpointInterval": "3"}
    assert log.snapshot().protocol.supports(DELETION_VECTORS)

    old = DeltaLog(tmp_path / "old")
    old.write(ROWS)
    old.write(ROWS, mode="overwrite", options={SETTINGS_OPTION: settings, "overwriteSchema": "true"})
    assert old.snapshot().properties == {}


@pytest.mark.parametrize("name", ["mine", "AppendOnly", "columnMapping.maxColumnId", "constraints.positive"])
def test_names_that_are_no_property_to_set_are_no_default(name: str) -> None:
    assert default_properties({DEFAULTS_PREFIX + name: "1"}) == {}


def test_only_what_processes_without_a_session_need_travels() -> None:
    needed = {DEFAULTS_PREFIX + "appendOnly": "true", AUTO_COMPACT_PREFIX + "enabled": "true"}
    assert settings_for_tasks({**needed, "spark.databricks.delta.stats.collect": "true"}) == needed


def test_rows_beyond_replace_where_are_taken_where_the_session_does_not_want_them_checked(
    tmp_path: Path,
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 7]}))
    options = {"replaceWhere": "id < 5"}
    with pytest.raises(InvariantViolationError):
        log.write(pa.table({"id": [9]}), mode="overwrite", options=options)
    unchecked = {SETTINGS_OPTION: json.dumps({CONSTRAINT_CHECK.full_name: "false"})}
    log.write(pa.table({"id": [9]}), mode="overwrite", options={**options, **unchecked})
    assert sorted(log.snapshot().scan().to_arrow()["id"].to_pylist()) == [7, 9]


def test_replace_where_names_partition_columns_only_where_the_session_says_so(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "p": [1]}), options={"partitionBy": "p"})
    only = {SETTINGS_OPTION: json.dumps({DATA_COLUMNS.full_name: "false"})}
    with pytest.raises(PredicateError) as refused:
        log.write(
            pa.table({"id": [1], "p": [1]}), mode="overwrite", options={"replaceWhere": "id = 1", **only}
        )
    assert refused.value.condition == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    log.write(pa.table({"id": [2], "p": [1]}), mode="overwrite", options={"replaceWhere": "p = 1", **only})
    assert log.snapshot().scan().to_arrow()["id"].to_pylist() == [2]
    wrong = {SETTINGS_OPTION: json.dumps({DATA_COLUMNS.full_name: "maybe"})}
    with pytest.raises(InvalidOptionError, match="maybe"):
        log.write(
            pa.table({"id": [2], "p": [1]}), mode="overwrite", options={"replaceWhere": "id = 2", **wrong}
        )


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "{"])
def test_text_that_holds_no_settings_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=SETTINGS_OPTION):
        DeltaLog(tmp_path / "t").write(ROWS, options={SETTINGS_OPTION: text})
    assert not (tmp_path / "t").exists()
