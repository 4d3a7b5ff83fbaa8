"""REORG ... UPGRADE UNIFORM: a table with rows becomes one that readers of Iceberg read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, UnsupportedOperationError
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.optimize import command as steps
from delta_ds.kernel.commands.optimize.command import upgrade_uniform
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.behaviour.kernel.transaction.alter.tables import action
from spark_tests.behaviour.kernel.transaction.iceberg.test_compatibility import NESTED, adds, complying
from spark_tests.behaviour.kernel.transaction.iceberg.test_conversion import same_rows

VECTORS = {"delta.enableDeletionVectors": "true"}
FLAT = NESTED.select(["id", "p"])


def old_table(path: Path, rows: pa.Table = NESTED) -> DeltaLog:
    """Without column mapping, by partitions, with a deletion vector."""
    rows = pa.concat_tables([rows, rows.set_column(0, "id", pa.array([3, 4], pa.int32()))])
    log = DeltaLog(path)
    log.write(rows, options={"partitionBy": "p", "delta.writePartitionColumnsToParquet": "false", **VECTORS})
    log.write(rows)
    delete(log, "id = 1")
    return log


def operations(log: DeltaLog) -> list[str]:
    found = [action(log, v, "commitInfo")["operation"] for v in range(log.snapshot().version + 1)]
    return found[3:]


def test_properties_then_files_then_the_metadata_of_iceberg(tmp_path: Path) -> None:
    log = old_table(tmp_path)
    files = len(adds(log))
    assert upgrade_uniform(log, 2) == files
    assert operations(log) == ["REORG TABLE UPGRADE UNIFORM", "REORG", "SET TBLPROPERTIES"]
    properties = log.snapshot().properties
    assert {k: v for k, v in properties.items() if "maxColumnId" not in k} == {
        "delta.writePartitionColumnsToParquet": "false",
        "delta.enableIcebergCompatV2": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "false",
        "delta.universalFormat.iceberg.atomicConversion.supported": "true",
        "delta.universalFormat.enabledFormats": "iceberg",
    }
    assert complying(log)
    assert all(add["tags"] == {"ICEBERG_COMPAT_VERSION": "2"} for add in adds(log))
    assert same_rows(log)
    version = log.snapshot().version
    assert upgrade_uniform(log, 2) == 0
    assert log.snapshot().version == version


def test_version_1_writes_files_anew_that_lack_the_partition_columns(tmp_path: Path) -> None:
    log = old_table(tmp_path, FLAT)
    assert upgrade_uniform(log, 1) == 4
    assert complying(log, 1)
    assert same_rows(log)
    assert upgrade_uniform(log, 2) > 0
    assert log.snapshot().properties["delta.enableIcebergCompatV1"] == "false"
    assert complying(log)
    assert same_rows(log)


def test_what_was_begun_is_finished_by_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = old_table(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(steps, "optimize", None)
        with pytest.raises(TypeError):
            upgrade_uniform(log, 2)
    with pytest.raises(UnsupportedOperationError, match="UPGRADE UNIFORM") as error:
        set_properties(log, {"delta.universalFormat.enabledFormats": "iceberg"})
    assert error.value.condition == "DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_NOT_PURGED"
    log.write(NESTED)
    assert upgrade_uniform(log, 2) == 4
    assert same_rows(log)


@pytest.mark.parametrize("version", [0, 3])
def test_there_are_two_versions(tmp_path: Path, version: int) -> None:
    log = old_table(tmp_path)
    with pytest.raises(DeltaError) as error:
        upgrade_uniform(log, version)
    assert error.value.condition == "DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED"
    assert log.snapshot().version == 2


def test_a_table_that_cannot_have_it_stays_as_it_is(tmp_path: Path) -> None:
    log = old_table(tmp_path)
    with pytest.raises(UnsupportedOperationError, match="column a of type array"):
        upgrade_uniform(log, 1)
    assert log.snapshot().version == 2
