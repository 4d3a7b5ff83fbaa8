"""Whose files are deleted: each kind by its names, in the table's folder, by one way for the whole package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delta_ds
from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import Owned
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from spark_tests.full_form import examples

PACKAGE = Path(delta_ds.__file__).parent
KINDS = {name: kind for name, kind in vars(deleter).items() if isinstance(kind, Owned)}
UUID = "6f9619ff-8b86-4011-b42d-00c04fc964ff"
V = f"{7:020}"


@pytest.mark.parametrize(
    ("kind", "own", "others"),
    [
        ("DATA_FILES", ["a", "p=1/a.parquet", "_change_data/x", "x\ny"], ["_delta_log", "_delta_log/x"]),
        ("STAGED_FILES", ["part-1.parquet", f"deletion_vector_{UUID}.bin"], [f"_delta_log/{V}.json"]),
        (
            "FOLDERS_OF_WRITES",
            [UUID, f"{UUID}/a", f"_change_data/{UUID}/p=1/a", f"_change_data/{UUID}"],
            ["", "a", "_change_data", "_delta_log", f"x/{UUID}", f"{UUID}x/a"],
        ),
        (
            "LOG_FILES",
            [f"_delta_log/{V}.json", f"_delta_log/.{V}.json.crc", f"_delta_log/{V}.checkpoint.{UUID}.parquet"],
            ["_delta_log/_last_checkpoint", f"{V}.json", f"_delta_log/x/{V}.json", "_delta_log/7.json"],
        ),
        ("STAGED_COMMITS", [f"_delta_log/_staged_commits/{V}.{UUID}.json"], [f"_delta_log/{V}.{UUID}.json"]),
        ("TEMPORARY_COMMITS", [f"_delta_log/.tmp/{V}.json.{UUID}"], ["_delta_log/.tmp/x", f".tmp/{V}.json.x"]),
        (
            "SIDECARS",
            [f"_delta_log/_sidecars/{UUID}.parquet"],
            ["_delta_log/_sidecars/notes.txt", "_delta_log/_sidecars/x/a.parquet", "_sidecars/a.parquet"],
        ),
        ("HADOOP_CHECKSUMS", ["_delta_log/._last_checkpoint.crc"], [f"_delta_log/{V}.crc", ".x.crc"]),
        ("PROBES", ["_delta_log/.create_once_probe.0a"], ["_delta_log/.create_once_probe", f"_delta_log/{V}.json"]),
        (
            "MANIFESTS",
            ["_symlink_format_manifest/manifest", "_symlink_format_manifest/p=1/q=2/manifest"],
            ["manifest", "_symlink_format_manifest", "_symlink_format_manifest/manifest/a", "p=1/manifest"],
        ),
        (
            "ICEBERG_METADATA",
            ["metadata/v3.metadata.json", f"metadata/snap-3-1-{UUID}.avro", f"metadata/{UUID}-m0.avro"],
            ["metadata/people.avro", "v3.metadata.json", "metadata/x/v3.metadata.json", "metadata/notes"],
        ),
        ("BENCH_FILES", ["pydelta-bench-0a", "pydelta-bench-0a/t/a"], ["pydelta-bench", "t/pydelta-bench-0a"]),
    ],
)  # fmt: skip
def test_kinds_are_known_by_their_names(kind: str, own: list[str], others: list[str]) -> None:
    assert [path for path in own if not KINDS[kind].holds(path)] == []
    assert [path for path in others if KINDS[kind].holds(path)] == []


def test_every_kind_is_told_by_another_name() -> None:
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)


# --- what is refused


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "memory":
        return open_storage(f"memory://{tmp_path.name}/t")
    return open_storage(tmp_path / "t")


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "../x", "a/../../x", "/etc/x", "//etc/x", ".//etc/x", "./../x", "s3://other/x", "file:/x",
        "_delta_log/x", "./_delta_log/x", "././_delta_log/x", "a/../_delta_log/x", ".//_delta_log/x", "_Delta_Log/x",
    ],
)  # fmt: skip
def test_hostile_paths_are_refused_and_told(
    storage: Storage, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage.write("own", b"1")
    storage.write("_delta_log/x", b"1")
    assert deleter.delete(storage, deleter.DATA_FILES, [path, "own"]) == ["own"]
    assert (storage.exists("own"), storage.exists("_delta_log/x")) == (False, True)
    assert [record.event for record in caplog.records] == ["deletion_refused"]
    with pytest.raises(StorageError, match="nothing was written"):
        deleter.check_own(storage, deleter.DATA_FILES, [path])


@given(
    parts=st.lists(st.sampled_from(["..", ".", "", "a", "own", "_delta_log", "home", "~"]), max_size=6),
    start=st.sampled_from(["", "/", "./", ".//", "//", "file:", "file://", "memory://", "s3://b"]),
)
@settings(max_examples=examples(200), deadline=None)
def test_no_path_leads_out_of_the_table_or_into_its_log(parts: list[str], start: str) -> None:
    storage = open_storage("memory://deleter/around/t")
    around = open_storage("memory://deleter")
    for name in ("home/own", "own", "around/own", "around/t/_delta_log/own", "around/home/a"):
        around.write(name, b"1")
    before = {row["path"] for batch in around.list_below() for row in batch.to_pylist()}
    deleter.delete(storage, deleter.DATA_FILES, [start + "/".join(parts)])
    after = {row["path"] for batch in around.list_below() for row in batch.to_pylist()}
    assert all(path.startswith("around/t/") and "_delta_log" not in path for path in before - after)


# --- one way


# What deletes or replaces files, and is not of a table: what a module makes for itself, and what stores are made of.
OWN_AFFAIRS = {
    "kernel/storage/local.py", "kernel/storage/local_output.py",
    "kernel/storage/local_put_if_absent.py", "kernel/storage/remote.py", "kernel/storage/remote_files.py",
    "kernel/storage/conditional_put.py", "kernel/storage/hdfs.py", "kernel/storage/coordination/storage.py",
    "kernel/storage/deleter.py",
    "kernel/log/cache.py", "spark/engines/classic/class_cache.py",  # their own entries, by their names
    "kernel/commands/changes/net_memory.py", "reporting/listeners.py",  # in a new temporary folder
    "spark/engines/classic/writer.py",  # the folder of its own write, which the deleter is asked about
    "spark/session/catalog/classes.py",  # a file of its own in a new temporary folder
    "spark/session/catalog/named.py",  # DROP TABLE of a table as a whole, and folders that are empty
}  # fmt: skip
DELETES = {
    "unlink", "remove_tree", "rmtree", "rmdir", "removedirs", "rename", "renames", "replace_file_by", "copyfile",
    "copytree", "move", "rm", "rm_file", "delete_empty_folders", "delete_object", "delete_objects",
}  # fmt: skip
OF_STORAGES = {"storage", "_storage", "parent", "plain", "filesystem", "fs", "_fs", "files"}


def _calls(tree: ast.AST) -> list[str]:
    """The calls in a module that delete, move or copy files, as far as their names tell."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            name = node.func.attr
            on_storage = name == "delete" and owner.rpartition(".")[2] in OF_STORAGES
            on_system = owner in ("os", "shutil") and name in ("remove", "replace", "copy", "copy2")
            if on_storage or on_system or name in DELETES:
                found.append(f"{owner}.{name}")
    return found


def test_only_the_deleter_deletes_in_a_table() -> None:
    found = {
        str(path.relative_to(PACKAGE)): calls
        for path in PACKAGE.rglob("*.py")
        if (calls := _calls(ast.parse(path.read_text())))
    }
    for calls in found.values():
        calls[:] = [
            call
            for call in calls
            if not call.startswith("deleter.") and call != "Metastore(Jvm.of(spark)).move"
        ]
    found = {module: calls for module, calls in found.items() if calls}
    assert {module: calls for module, calls in found.items() if module not in OWN_AFFAIRS} == {}
    assert OWN_AFFAIRS - found.keys() == set()
