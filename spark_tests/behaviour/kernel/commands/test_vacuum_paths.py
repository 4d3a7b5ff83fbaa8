"""Which paths are looked at, and under how many spellings a file is known to be needed."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.vacuum_tables import (
    HOUR,
    NOW,
    SCHEMA,
    add,
    age,
    commit,
    files,
    new_table,
    put,
    remove,
    texts_of,
)


def run(path: Path) -> set[str]:
    return texts_of(vacuum(DeltaLog(path), now_ms=NOW).paths)


def raw(path: str) -> dict[str, dict[str, object]]:
    """An add whose path is spelled as given."""
    action = add("x")
    action["add"]["path"] = path
    return action


def test_hidden_names_are_left_alone_but_not_those_of_partitions(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(
        pa.schema([*SCHEMA, ("_p", pa.string()), (".q r", pa.string())]), partition_columns=["_p", ".q r"]
    )
    kept = [
        "_hidden", ".hidden", "_temporary/0/a", ".dots/a", "_x=1/a", "p=1/_SUCCESS", "p=1/.a.crc", "a/_b/c/d",
        "_change_data_old/a", "a/_change_data/b",
    ]  # fmt: skip
    gone = [
        "_p=1/.q r=2/a", "_p=_1/a", "_change_data/_p=1/a", "_change_data/a", "_delta_index/a", "a_b/c.d",
        "x/_p=1/.q r=2/b",
    ]  # fmt: skip
    for path in (*kept, *gone):
        put(tmp_path, path)
    assert run(tmp_path) == set(gone)
    assert files(tmp_path) == set(kept)


@pytest.mark.parametrize("flat", [False, True])
def test_a_table_below_the_folder_of_another_one_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, flat: bool
) -> None:
    # A flat store lists files in no folders: the files of the inner logs alone tell.
    where = f"memory://vacuum-{uuid.uuid4()}/t" if flat else str(tmp_path / "t")
    outer = DeltaLog(where)
    outer.write(pa.table({"id": [1]}))
    inner = [DeltaLog(f"{where}/{path}") for path in ("a/copy", "p=1")]
    outer.clone(inner[0], shallow=True)
    for log in inner:
        log.write(pa.table({"id": [2], "p": ["x"]}), options={"mergeSchema": "true"})
    outer.storage.write("a/stray.parquet", b"12345")
    outer.storage.write("a/copybook/stray.parquet", b"12345")
    after = time.time_ns() // 1_000_000 + 1000 * HOUR
    strays = {"a/stray.parquet", "a/copybook/stray.parquet"}
    assert texts_of(vacuum(outer, now_ms=after, record=False).paths) == strays
    assert [log.snapshot().scan().to_arrow().num_rows for log in inner] == [2, 1]
    assert "inner_tables_kept" in caplog.text
    inner[1].delete()
    assert len(vacuum(inner[1], now_ms=after, record=False).paths) == 1


def test_an_inventory_that_shows_an_inner_log_leaves_its_table_alone(tmp_path: Path) -> None:
    new_table(tmp_path)
    paths = ["inner/_delta_log/00000000000000000000.json", "inner/p=1/a", "a"]
    for path in paths:
        put(tmp_path, path)
    inventory = pa.table(
        {
            "path": [f"{tmp_path}/{path}" for path in paths],
            "length": [5] * 3,
            "isDir": [False] * 3,
            "modificationTime": [1] * 3,
        }
    )
    done = vacuum(DeltaLog(tmp_path), now_ms=NOW, inventory=inventory)
    assert texts_of(done.paths) == {"a"}


def test_what_a_killed_write_of_spark_left_is_found_in_its_own_folder_only(tmp_path: Path) -> None:
    new_table(tmp_path)
    folder = "0f3b0a52-6a0c-4e55-9d1e-0c1a5b6d7e8f"
    attempt = "_temporary/0/_temporary/attempt_2026_0001_m_000000_0"
    gone = [
        f"{folder}/{attempt}/part-0.parquet",
        f"{folder}/1/{attempt}/p=1/part-1.parquet",
        f"{folder}/_temporary/x",
    ]
    kept = [
        f"{attempt}/part-0.parquet",
        f"a/{attempt}/part-0.parquet",
        f"{folder}/_other/x",
        f"{folder}/{attempt}/.x.crc",
    ]
    for path in (*kept, *gone):
        put(tmp_path, path)
    assert run(tmp_path) == set(gone)
    assert files(tmp_path) == set(kept)


def test_the_log_is_never_touched_even_if_the_log_asks_for_it(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "_delta_log/extra")
    commit(table, 900, add("_delta_log/extra"), add("../outside"))
    commit(table, 800, remove("_delta_log/extra", 800), remove("../outside", 800))
    assert run(tmp_path) == set()
    assert texts_of(vacuum(DeltaLog(tmp_path), now_ms=NOW, mode="lite").paths) == set()
    assert (tmp_path / "_delta_log/extra").exists()


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "p=a%2Fb/x",
        "é/ü",
        "100%",
        "a+b",
        "x:y",
        "c#d?e",
        "p=2020-01-01 10%3A00/f%20g",
        "p=a b/x",
        "s3:/x",
    ],
)
def test_encoded_paths_are_the_files_they_name(tmp_path: Path, name: str) -> None:
    table = new_table(tmp_path)
    put(tmp_path, name)
    put(tmp_path, name + "-old")
    commit(table, 900, add(name), add(name + "-old"))
    commit(table, 800, remove(name + "-old", 800))
    assert texts_of(vacuum(DeltaLog(tmp_path), now_ms=NOW, mode="lite", dry_run=True).paths) == {
        name + "-old"
    }
    assert run(tmp_path) == {name + "-old"}
    assert files(tmp_path) == {name}


@pytest.mark.parametrize(
    "start",
    [
        "{root}/",
        "file:{root}/",
        "file://{root}/",
        "FILE://{root}//",
        "./",
        "p=1/../",
        "hdfs://elsewhere{root}/",
    ],
)
def test_other_spellings_of_a_path_inside_the_table_keep_the_file(tmp_path: Path, start: str) -> None:
    root = tmp_path / "t"
    table = new_table(root)
    put(root, "p=1/live")
    put(root, "p=1/orphan")
    commit(table, 900, raw(start.format(root=root) + "p=1/live"))
    assert run(root) == {"p=1/orphan"}


def test_a_path_through_a_link_keeps_the_file(tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = new_table(root)
    (tmp_path / "link").symlink_to(root)
    put(root, "live")
    put(root, "named by its own folder")
    commit(table, 900, raw(f"{tmp_path}/link/live"), raw(f"{root}/named%20by%20its%20own%20folder"))
    assert run(tmp_path / "link") == set()


@pytest.mark.parametrize("mode", ["full", "lite"])
def test_files_reached_through_links_inside_the_table_stay(tmp_path: Path, mode: str) -> None:
    root = tmp_path / "t"
    table = new_table(root)
    for path in (
        "moved/in linked folder",
        "deep/er/in nested link",
        "store/target",
        "store/orphan",
        "moved/orphan",
    ):
        put(root, path)
    put(tmp_path, "outside/hop")
    (root / "p=1").symlink_to(root / "moved")
    (root / "q=1").mkdir()
    (root / "q=1" / "r=1").symlink_to(Path("..") / "deep" / "er")
    (root / "named.parquet").symlink_to(Path("store") / "target")
    (root / "again.parquet").symlink_to(root / "named.parquet")
    commit(
        table, 900, raw("p=1/in%20linked%20folder"), raw("q=1/r=1/in%20nested%20link"), raw("again.parquet"),
        raw("named.parquet"),
    )  # fmt: skip
    vacuum(DeltaLog(root), now_ms=NOW, mode=mode)
    for path in ("p=1/in linked folder", "q=1/r=1/in nested link", "named.parquet", "again.parquet"):
        assert (root / path).read_bytes()
    if mode == "full":
        assert not (root / "store" / "orphan").exists() and not (root / "moved" / "orphan").exists()


def test_a_file_named_through_a_link_elsewhere_that_leads_back_stays(tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = new_table(root)
    put(root, "store/target")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.parquet").symlink_to(root / "store" / "target")
    commit(table, 900, raw(f"file:{tmp_path}/elsewhere/x.parquet"))
    assert run(root) == set()


def test_the_files_of_a_shallow_clones_source_are_none_of_its_business(tmp_path: Path) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    new_table(source)
    table = new_table(clone)
    for root in (source, clone):
        put(root, "a")
    commit(table, 900, raw(f"file:{source}/a"), raw("s3://bucket/t/b"), add("own"))
    commit(table, 800, {"remove": {"path": f"file:{source}/a", "deletionTimestamp": 1, "dataChange": True}})
    assert texts_of(vacuum(DeltaLog(clone), now_ms=NOW, mode="lite").paths) == set()
    assert run(clone) == {"a"}
    assert files(source) == {"a"}


def test_hadoops_checksums_go_with_their_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for path in ("p=1/a", "p=1/live", "b"):
        put(tmp_path, path)
        folder, _, name = path.rpartition("/")
        put(tmp_path, f"{folder}/.{name}.crc".lstrip("/"), 1)
    commit(table, 900, add("p=1/live"), add("p=1/a"))
    commit(table, 800, remove("p=1/a", 800))
    vacuum(DeltaLog(tmp_path), now_ms=NOW, mode="lite")
    assert files(tmp_path) == {"p=1/live", "p=1/.live.crc", "b", ".b.crc"}
    assert run(tmp_path) == {"b"}
    assert files(tmp_path) == {"p=1/live", "p=1/.live.crc"}


def test_folders_that_are_empty_and_old_go_and_others_stay(tmp_path: Path) -> None:
    new_table(tmp_path)
    put(tmp_path, "full/of/files", 1)
    put(tmp_path, "hiding/_x/y")
    put(tmp_path, "emptied/old")
    for folder in ("a/b/c", "a/young", "old/older", "_hidden"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("a/b/c", "a/b", "a", "old/older", "old", "_hidden", "hiding", "emptied"):
        age(tmp_path / folder, 1000)
    age(tmp_path / "a/young", 1)
    result = vacuum(DeltaLog(tmp_path), now_ms=NOW)
    assert result.folders == ("a/b", "a/b/c", "old", "old/older")
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.iterdir()}
    assert left == {"_delta_log", "full", "hiding", "emptied", "a", "_hidden"}
    assert (tmp_path / "a/young").exists() and not (tmp_path / "a/b").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "t"
    new_table(root)
    put(tmp_path, "elsewhere/a")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    assert run(root) == set()
    assert (root / "link" / "a").exists()


def test_icebergs_metadata_stays_where_a_table_keeps_it(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"delta.universalFormat.enabledFormats": "iceberg"})
    put(tmp_path, "metadata/v1.metadata.json")
    put(tmp_path, "metadata2/a")
    put(tmp_path, "p=1/metadata/a")
    assert run(table.path) == {"metadata2/a", "p=1/metadata/a"}
