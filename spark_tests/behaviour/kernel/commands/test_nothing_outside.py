"""Whatever leads out of a table's folder, no command deletes, overwrites or copies anything there.

Each example is a table in a folder with neighbours. Links are put into the table and hostile paths into its log, as a
table may bring them that comes out of an archive; then commands run that delete, overwrite or copy files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.dml.commit import discard_folder
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.log.cleanup import clean_up
from delta_ds.kernel.log.filenames import forget_hadoop_checksum
from delta_ds.kernel.storage.deleter import SIDECARS
from delta_ds.kernel.storage.staging import StagedFiles
from delta_ds.testing import TableBuilder
from spark_tests.full_form import FULL, examples

MARK = b"BELONGS TO A NEIGHBOUR"
LONG_AGO = time.time() - 90 * 86_400
UUID = "6f9619ff-8b86-4011-b42d-00c04fc964ff"
OLD = f"{1:020}"

# Names that commands look for, and some that they do not.
NEIGHBOURS = (
    "thesis.doc", "photos/one.jpg", "a.parquet", "part/b.parquet", f"{OLD}.json", f"{OLD}.crc", f".{OLD}.json.crc",
    f"{OLD}.checkpoint.parquet", f"{OLD}.{UUID}.json", f"{UUID}.parquet", "manifest", "p=1/manifest",
    "p=1/a.parquet", f"{UUID}/c.parquet", f"_change_data/{UUID}/d.parquet", "._last_checkpoint.crc",
    "v1.metadata.json", f"snap-1-{UUID}.avro", f"{UUID}-m0.avro", f"deletion_vector_{UUID}.bin", ".a.parquet.crc",
)  # fmt: skip


def fill(home: Path) -> None:
    """Fill a folder with files of others."""
    for name in NEIGHBOURS:
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(pa.table({"id": [1], "said": [MARK.decode()]}), file, compression="none")
        else:
            file.write_bytes(MARK)
    (home / "hollow" / "inner").mkdir(parents=True)
    age(home)


def contents(home: Path) -> dict[str, bytes]:
    """Files and folders, and what they hold."""
    found = (path for path in home.rglob("*") if path.name != "_last_checkpoint")
    return {str(p.relative_to(home)): p.read_bytes() if p.is_file() else b"" for p in found}


def age(path: Path) -> None:
    for file in [path, *path.rglob("*")]:
        os.utime(file, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def new_table(path: Path) -> TableBuilder:
    """A table with partitions, manifests and sidecars, whose versions have expired."""
    table = TableBuilder(path)
    table.create(
        pa.schema([("id", pa.int64()), ("p", pa.string())]),
        partition_columns=["p"],
        properties={
            "delta.logRetentionDuration": "interval 1 days", "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": "1", "delta.deletedFileRetentionDuration": "interval 0 hours",
            "delta.compatibility.symlinkFormatManifest.enabled": "true",
        },
        reader_features=["v2Checkpoint"],
    )  # fmt: skip
    for n in range(3):
        table.append(pa.table({"id": [n]}), partition_values={"p": str(n % 2)})
    table.checkpoint("v2-parquet", version=2)
    table.checkpoint("v2-parquet", version=3)
    generate(DeltaLog(path), "symlink_format_manifest")
    return table


# --- ways out of a table

Way = Callable[[TableBuilder, Path], None]


def link(name: str, target: str = ".") -> Way:
    """A link in the table, in place of what is there."""

    def put(table: TableBuilder, home: Path) -> None:
        at = table.path / name
        if any(above.is_symlink() for above in at.parents if above.is_relative_to(table.path)):
            return
        if at.is_symlink() or at.is_file():
            at.unlink()
        elif at.exists():
            shutil.rmtree(at)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(home / target)

    return put


def moved(name: str) -> Way:
    """A folder of the table lies elsewhere, and a link in its place."""

    def put(table: TableBuilder, home: Path) -> None:
        at, there = table.path / name, home / f"moved {name.rpartition('/')[2]}"
        if at.is_dir() and not at.is_symlink():
            shutil.move(at, there)
            at.symlink_to(there)

    return put


def named(path: str, *, removed: bool) -> Way:
    """A path in the log, of a file that was removed long ago or that is still there."""

    def commit(table: TableBuilder, home: Path) -> None:
        size = (home / "a.parquet").stat().st_size
        body = {
            "path": path.format(home=home),
            "partitionValues": {"p": "1"},
            "size": size,
            "dataChange": True,
        }
        table.commit({"add": {**body, "modificationTime": 1}})
        if removed:
            table.commit({"remove": {**body, "deletionTimestamp": 1000}})

    return commit


LINKS = {
    **{
        f"moved {name}": moved(name)
        for name in ("_delta_log", "_delta_log/_sidecars", "p=1", "_symlink_format_manifest")
    },
    **{
        name: link(name, target)
        for name, target in [
            ("_delta_log/_sidecars", "."), ("_delta_log/_staged_commits", "."), ("p=1", "."), ("p=1/deeper", "."),
            ("_symlink_format_manifest", "."), ("_symlink_format_manifest/p=1", "p=1"), ("sub", "."),
            ("_change_data", "_change_data"), ("sub/of/it", "."), (UUID, UUID), ("metadata", "."),
            ("a.parquet", "a.parquet"), (f"_delta_log/.{OLD}.json.crc", "thesis.doc"), ("_delta_log/.tmp", "."),
            ("hollow", "hollow"),
        ]
    },
}  # fmt: skip
PATHS = (
    "../home/a.parquet", "..%2Fhome%2Fa.parquet", "%2e%2e/home/a.parquet", "p=1/../../home/a.parquet",
    "{home}/a.parquet", "file:{home}/a.parquet", "file://{home}/a.parquet", "file:///etc/hostname",
    "/etc/../{home}/a.parquet", "s3://other/a.parquet", "sub/a.parquet", "sub/of/it/a.parquet", "p=1/a.parquet",
    "p=1/deeper/a.parquet", "./sub//a.parquet", "sub/./photos/../a.parquet", "a.parquet", "hollow/inner",
)  # fmt: skip
WAYS: dict[str, Way] = {
    **LINKS,
    **{f"removed {path}": named(path, removed=True) for path in PATHS},
    **{f"live {path}": named(path, removed=False) for path in PATHS},
}


# --- commands


def staged(log: DeltaLog) -> None:
    """A write that fails, and believes that such files are its own."""
    names = [path for path in PATHS if "{" not in path and ":" not in path]
    for name in names:
        with suppress(KeyError), StagedFiles(log.storage, [name]):
            raise KeyError
    with suppress(KeyError), StagedFiles(log.storage, [f"_delta_log/_sidecars/{UUID}.parquet"], SIDECARS):
        raise KeyError


def by_inventory(log: DeltaLog) -> None:
    root = Path(log.storage.url)
    home = root.parent / "home"
    inside = [f"{root}/{folder}" for folder in ("p=1", "sub", "sub/of/it", "_change_data", UUID, "hollow")]
    names = [f"{folder}/{name}" for folder in inside for name in NEIGHBOURS]
    names += [f"{root}/../home/{name}" for name in NEIGHBOURS] + [f"{home}/{name}" for name in NEIGHBOURS]
    rows = [(name, 1, False, 1000) for name in names]
    rows += [
        (name, 0, True, 1000) for name in (*inside, f"{root}/hollow/inner", f"{root}/../home/hollow/inner")
    ]
    vacuum(log, 0, inventory=rows)


def append(log: DeltaLog) -> None:
    log.write(pa.table({"id": [7, 8], "p": ["0", "1"]}))


COMMANDS: dict[str, Callable[[DeltaLog], object]] = {
    "append": append,
    "clean-up": lambda log: clean_up(log.storage),
    "vacuum": lambda log: vacuum(log, 0),
    "vacuum lite": lambda log: vacuum(log, 0, mode="lite"),
    "vacuum by inventory": by_inventory,
    "manifests": lambda log: generate(log, "symlink_format_manifest"),
    "failed write": staged,
    "failed command": lambda log: discard_folder(log.open_snapshot(), UUID),
    "checksum": lambda log: forget_hadoop_checksum(log.storage, "_delta_log/_last_checkpoint"),
    "delete": lambda log: delete(log, "id = 1"),
    "optimize": optimize,
    "deep clone": lambda log: deep_clone(log, DeltaLog(Path(log.storage.url).parent / "clone")),
}


def check_neighbours(ways: Sequence[str], commands: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve() / "home"
        fill(home)
        table = new_table(home.parent / "table")
        for way in sorted(ways, key=list(WAYS).index):
            WAYS[way](table, home)
        age(home.parent)
        before = contents(home)
        for command in commands:
            with suppress(DeltaError):
                COMMANDS[command](DeltaLog(table.path))
            after = contents(home)
            assert {name: after.get(name) for name in before} == before, (command, ways)
        clone = home.parent / "clone"
        copied = [file for file in clone.rglob("*") if file.is_file() and MARK in file.read_bytes()]
        assert copied == [], ways


@example(ways={"_delta_log/_sidecars"}, commands=["append"])
@example(ways={"_symlink_format_manifest"}, commands=["append"])
@example(ways={"_symlink_format_manifest/p=1"}, commands=["manifests"])
@example(ways={"sub", "removed sub/a.parquet"}, commands=["vacuum lite"])
@example(ways={"sub"}, commands=["vacuum by inventory"])
@example(ways={"moved _delta_log"}, commands=["clean-up"])
@example(ways={"_delta_log/_staged_commits"}, commands=["clean-up"])
@example(ways={"p=1", "_change_data", UUID}, commands=["failed write", "failed command"])
@example(ways={"live {home}/a.parquet"}, commands=["deep clone"])
@example(ways={"p=1", "live p=1/a.parquet"}, commands=["deep clone"])
@given(
    ways=st.sets(st.sampled_from(list(WAYS)), min_size=1, max_size=4),
    commands=st.lists(st.sampled_from(list(COMMANDS)), min_size=1, max_size=4, unique=True),
)
@settings(max_examples=1000 if FULL else examples(25), deadline=None, suppress_health_check=list(HealthCheck))
def test_neighbours_of_a_table_are_left_alone(ways: set[str], commands: list[str]) -> None:
    check_neighbours(sorted(ways), commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_all_links_at_once_lead_no_command_out(command: str) -> None:
    check_neighbours([way for way in LINKS if not way.startswith("moved")], [command])


@pytest.mark.parametrize(
    ("command", "goes"),
    [
        ("append", "_delta_log/*.json"), ("clean-up", "_delta_log/_sidecars/*.parquet"), ("vacuum", "old.parquet"),
        ("vacuum lite", "old.parquet"), ("manifests", "_symlink_format_manifest/p=9/manifest"),
        ("failed command", f"{UUID}/x.parquet"), ("checksum", "_delta_log/._last_checkpoint.crc"),
    ],
)  # fmt: skip
def test_what_is_the_tables_own_goes(tmp_path: Path, command: str, goes: str) -> None:
    fill(tmp_path / "home")
    table = new_table(tmp_path / "table")
    for name in ("old.parquet", "_symlink_format_manifest/p=9/manifest", f"{UUID}/x.parquet"):
        (table.path / name).parent.mkdir(exist_ok=True)
        (table.path / name).write_bytes(b"own")
    (table.log / "._last_checkpoint.crc").write_bytes(b"own")
    named("old.parquet", removed=True)(table, tmp_path / "home")
    age(table.path)
    before = set(table.path.glob(goes))
    COMMANDS[command](DeltaLog(table.path))
    assert before - set(table.path.glob(goes))


def test_what_is_not_called_as_a_commands_files_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the table's own folders, where somebody has put it."""
    table = new_table(tmp_path / "table")
    strange = [
        "_delta_log/_sidecars/notes.txt", "_symlink_format_manifest/README", "_symlink_format_manifest/p=1/list",
        "_delta_log/_staged_commits/notes.txt", "_delta_log/notes.json",
    ]  # fmt: skip
    for name in strange:
        (table.path / name).parent.mkdir(exist_ok=True)
        (table.path / name).write_bytes(MARK)
    age(table.path)
    for command in ("append", "clean-up", "manifests", "vacuum", "vacuum lite"):
        COMMANDS[command](DeltaLog(table.path))
    assert [name for name in strange if not (table.path / name).exists()] == []
    assert 'kind="sidecars of checkpoints" path=_delta_log/_sidecars/notes.txt' in caplog.text
    assert "kind=manifests path=_symlink_format_manifest/README" in caplog.text


@pytest.mark.parametrize(
    ("ways", "command", "told"),
    [
        (["p=1"], "vacuum", "link_not_followed"), (["p=1"], "vacuum by inventory", "link_not_followed"),
        (["sub", "removed sub/a.parquet"], "vacuum lite", "deletion_refused"),
        (["moved _delta_log/_sidecars"], "clean-up", "deletion_refused"),
        (["moved _delta_log"], "clean-up", "deletion_refused"),
        (["_symlink_format_manifest"], "append", "post_commit_failed"),
    ],
)  # fmt: skip
def test_what_is_left_alone_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ways: list[str], command: str, told: str
) -> None:
    fill(tmp_path / "home")
    table = new_table(tmp_path / "table")
    for way in ways:
        WAYS[way](table, tmp_path / "home")
    age(tmp_path)
    COMMANDS[command](DeltaLog(table.path))
    assert [record.event for record in caplog.records if getattr(record, "event", "") == told]


@pytest.mark.parametrize("mode", ["full", "lite"])
def test_links_that_are_files_go_as_such_and_hard_links_too(tmp_path: Path, mode: str) -> None:
    """As delta-spark does; it follows links to folders, though."""
    fill(tmp_path / "home")
    table = new_table(tmp_path / "table")
    (table.path / "soft").symlink_to(tmp_path / "home" / "thesis.doc")
    (table.path / "hard").hardlink_to(tmp_path / "home" / "a.parquet")
    for name in ("soft", "hard"):
        named(name, removed=True)(table, tmp_path / "home")
    age(tmp_path)
    before = contents(tmp_path / "home")
    vacuum(DeltaLog(table.path), 0, mode=mode)
    assert not (table.path / "soft").is_symlink() and not (table.path / "hard").exists()
    assert contents(tmp_path / "home") == before


def test_a_dry_run_names_what_would_go_and_nothing_behind_links(tmp_path: Path) -> None:
    fill(tmp_path / "home")
    table = new_table(tmp_path / "table")
    (table.path / "old.parquet").write_bytes(b"own")
    for way in ("sub", "removed sub/a.parquet", "removed a.parquet"):
        WAYS[way](table, tmp_path / "home")
    named("old.parquet", removed=True)(table, tmp_path / "home")
    age(tmp_path)
    found = vacuum(DeltaLog(table.path), 0, mode="lite", dry_run=True).paths.to_pylist()
    assert "old.parquet" in found and "sub/a.parquet" not in found
    assert vacuum(DeltaLog(table.path), 0, mode="lite").num_files == len(found)


def test_a_table_that_is_reached_by_a_link_is_cleaned(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table")
    (tmp_path / "link").symlink_to(table.path)
    (table.path / "old.parquet").write_bytes(b"own")
    age(tmp_path)
    log = DeltaLog(tmp_path / "link")
    assert clean_up(log.storage)
    assert vacuum(log, 0).num_files == 1
    assert not (table.path / "old.parquet").exists() and not (table.log / f"{0:020}.json").exists()
