"""Symlink manifests, asked for and after a commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.format.schema.types import LONG, STRING, StructField, StructType
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.kernel.transaction.symlink_manifest import update_after
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.whole_tables import bodies, ids, with_vector

MODE = "symlink_format_manifest"


def manifests(path: Path) -> dict[str, set[str]]:
    """The lines of each manifest, by its folder."""
    root = path / "_symlink_format_manifest"
    return {
        file.parent.relative_to(root).as_posix(): set(file.read_text().splitlines())
        for file in root.rglob("manifest")
    }


def partitioned(path: Path) -> DeltaLog:
    log = DeltaLog(path)
    create_table(log, StructType((StructField("id", LONG), StructField("p", STRING))), ["p"])
    write(log, "a b", "c/d", None)
    return log


def write(log: DeltaLog, *partitions: str | None) -> int:
    values = pa.array(partitions, pa.string())
    version = log.write(pa.table({"id": pa.array(range(len(partitions)), pa.int64()), "p": values}))
    assert version is not None
    return version


def test_a_table_without_partitions_has_one_manifest(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "a ä")
    log.write(ids(1))
    log.write(ids(2))
    assert generate(log, MODE.upper()) == 1
    names = [add["path"] for version in (0, 1) for add in bodies(log, version, "add")]
    assert manifests(tmp_path / "a ä") == {".": {f"file:{tmp_path}/a ä/{name}" for name in names}}
    assert log.snapshot().version == 1


def test_an_empty_table_has_an_empty_manifest(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    create_table(log, StructType((StructField("id", LONG),)))
    generate(log, MODE)
    assert manifests(tmp_path) == {".": set()}


def test_each_partition_has_its_manifest(tmp_path: Path) -> None:
    log = partitioned(tmp_path)
    assert generate(log, MODE) == 3
    found = manifests(tmp_path)
    assert set(found) == {"p=a b", "p=c%2Fd", "p=__HIVE_DEFAULT_PARTITION__"}
    (line,) = found["p=c%2Fd"]
    assert Path(line.removeprefix("file:")).exists()


def test_partitions_of_one_folder_share_its_manifest(tmp_path: Path) -> None:
    # Null, the empty text, and the text that stands for null in the names of folders.
    table = TableBuilder(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table.create(schema, partition_columns=["p"], properties=ENABLED)
    values = [None, "", "__HIVE_DEFAULT_PARTITION__", "a"]
    adds = [
        table.write_file(pa.table({"id": [n]}), path=f"{n}.parquet", partition_values={"p": value})
        for n, value in enumerate(values)
    ]
    table.commit(*adds)
    files = [f"file:{tmp_path}/{n}.parquet" for n in range(4)]
    expected = {"p=__HIVE_DEFAULT_PARTITION__": set(files[:3]), "p=a": {files[3]}}
    log = DeltaLog(tmp_path)
    assert generate(log, MODE) == 2
    assert manifests(tmp_path) == expected
    log.delete("id = 2")
    expected["p=__HIVE_DEFAULT_PARTITION__"].remove(files[2])
    assert manifests(tmp_path) == expected


def test_partitions_without_files_lose_their_manifest(tmp_path: Path) -> None:
    log = partitioned(tmp_path)
    generate(log, MODE)
    log.write(pa.table({"id": [1], "p": ["new"]}), "overwrite")
    assert generate(log, MODE) == 1
    assert set(manifests(tmp_path)) == {"p=new"}


def test_a_clone_names_the_files_of_its_source(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "s ä")
    log.write(ids(1))
    shallow_clone(log, clone := DeltaLog(tmp_path / "c"))
    generate(clone, MODE)
    (add,) = bodies(log, 0, "add")
    assert manifests(tmp_path / "c") == {".": {f"file:{tmp_path}/s ä/{add['path']}"}}


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    log = partitioned(tmp_path)
    with pytest.raises(InvalidOptionError) as caught:
        generate(log, "hudi")
    assert caught.value.condition == "DELTA_MODE_NOT_SUPPORTED"


def test_deletion_vectors_are_refused(tmp_path: Path) -> None:
    _, log = with_vector(tmp_path)
    with pytest.raises(UnsupportedOperationError) as caught:
        generate(log, MODE)
    assert caught.value.condition == "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"
    assert manifests(tmp_path) == {}


def test_column_mapping_is_refused(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    columns = StructType((StructField("id", LONG),))
    create_table(log, columns, properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedOperationError) as caught:
        generate(log, MODE)
    assert caught.value.condition == "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"


def committed(log: DeltaLog, version: int) -> list[dict[str, object]]:
    return [{name: body} for name in ("add", "remove") for body in bodies(log, version, name)]


def test_after_a_commit_only_its_partitions_are_written(tmp_path: Path) -> None:
    log = partitioned(tmp_path)
    generate(log, MODE)
    untouched = tmp_path / "_symlink_format_manifest" / "p=c%2Fd" / "manifest"
    untouched.write_text("as it was\n")
    version = write(log, "a b", "new")
    assert update_after(log.open_snapshot(), committed(log, version), everything=False) == 2
    found = manifests(tmp_path)
    assert (len(found["p=a b"]), len(found["p=new"]), found["p=c%2Fd"]) == (2, 1, {"as it was"})


def test_after_a_commit_that_empties_a_partition_its_manifest_goes(tmp_path: Path) -> None:
    log = partitioned(tmp_path)
    generate(log, MODE)
    txn = log.start_transaction()
    (gone,) = [b for b in bodies(log, 1, "add") if b["partitionValues"]["p"] is None]
    txn.remove({k: gone[k] for k in ("path", "partitionValues", "size")} | {"dataChange": True})
    version = txn.commit("DELETE")
    assert update_after(log.open_snapshot(), committed(log, version), everything=False) == 0
    assert set(manifests(tmp_path)) == {"p=a b", "p=c%2Fd"}


def test_after_a_change_of_metadata_all_are_written(tmp_path: Path) -> None:
    log = partitioned(tmp_path)
    assert update_after(log.open_snapshot(), [], everything=True) == 3
    without_values = [{"remove": {"path": "x", "dataChange": True}}]
    assert update_after(log.open_snapshot(), without_values, everything=False) == 3


# --- after every commit

ENABLED = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}


def enabled(path: Path) -> DeltaLog:
    log = partitioned(path)
    set_properties(log, ENABLED)
    return log


def test_enabled_tables_have_manifests_of_every_version(tmp_path: Path) -> None:
    log = enabled(tmp_path)
    assert manifests(tmp_path) == {}
    write(log, "a b")
    assert {folder: len(lines) for folder, lines in manifests(tmp_path).items()} == {
        "p=a b": 2, "p=c%2Fd": 1, "p=__HIVE_DEFAULT_PARTITION__": 1,
    }  # fmt: skip
    log.write(pa.table({"id": [1], "p": ["new"]}), "overwrite")
    assert set(manifests(tmp_path)) == {"p=new"}
    restore(log, version=2)
    assert set(manifests(tmp_path)) == {"p=a b", "p=c%2Fd", "p=__HIVE_DEFAULT_PARTITION__"}


def test_a_commit_stands_when_its_manifests_fail_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = enabled(tmp_path)
    (tmp_path / "_symlink_format_manifest").write_text("in the way")
    write(log, "a b")
    assert "version=3 step=symlink_manifest" in caplog.text
    assert log.snapshot().scan().to_arrow().num_rows == 4
    (tmp_path / "_symlink_format_manifest").unlink()
    generate(log, MODE)
    assert len(manifests(tmp_path)["p=a b"]) == 2


def test_manifests_after_every_commit_and_deletion_vectors_exclude_each_other(tmp_path: Path) -> None:
    log = enabled(tmp_path / "a")
    with pytest.raises(UnsupportedOperationError, match="PERSISTENT_DELETION_VECTORS"):
        set_properties(log, {"delta.enableDeletionVectors": "true"})
    _, log = with_vector(tmp_path / "b")
    set_properties(log, {"delta.enableDeletionVectors": "false"})
    with pytest.raises(UnsupportedOperationError, match="EXISTING_DELETION_VECTORS"):
        set_properties(log, ENABLED)
