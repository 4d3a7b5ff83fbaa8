"""Writing to a local filesystem that fails, lacks something, or dies in the middle."""

from __future__ import annotations

import errno
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import local_output, local_put_if_absent
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for, open_storage
from spark_tests.behaviour.kernel.storage.write_contract import WriteContract, race_processes

COMMIT = "_delta_log/00000000000000000000.json"


@pytest.fixture
def storage(tmp_path: pathlib.Path) -> Storage:
    return open_storage(tmp_path / "t")


def files(storage: Storage) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(folder, name), storage.url)
        for folder, _, names in os.walk(storage.url)
        for name in names
    )


def failing(number: int, only: Callable[..., bool] = lambda *_: True, real: Any = None) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        if only(*args):
            raise OSError(number, os.strerror(number))
        return real(*args, **options)

    return call


@pytest.fixture
def named_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where files without a name are not known."""
    monkeypatch.setattr(local_put_if_absent, "_UNNAMED", None)


@pytest.fixture
def no_links(named_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))


@pytest.mark.usefixtures("named_files")
class TestNamedTemporaryFiles(WriteContract):
    pass


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2")
@pytest.mark.usefixtures("no_links")
class TestWithoutHardLinks(WriteContract):
    pass


@pytest.mark.slow
def test_of_eight_processes_that_create_one_file_one_wins_and_keeps_it(storage: Storage) -> None:
    won = race_processes(storage, COMMIT, 8)
    assert len(won) == 1
    assert storage.read(COMMIT) == won[0]
    assert files(storage) == [COMMIT]


def test_a_filesystem_without_links_and_exclusive_rename_is_refused(
    storage: Storage, no_links: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_put_if_absent, "_rename_without_replacing", lambda *_: errno.EINVAL)
    with pytest.raises(StorageError, match=r"nothing was written.*allowUnsafeCommits=true"):
        storage.create(COMMIT, b"1")
    assert files(storage) == []


def test_allowing_unsafe_commits_renames_after_a_look(
    tmp_path: pathlib.Path, no_links: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local_put_if_absent, "_rename_without_replacing", lambda *_: errno.ENOSYS)
    storage = open_storage(tmp_path, {"allowUnsafeCommits": "true"})
    storage.create(COMMIT, b"1")
    with pytest.raises(FileExistsError):
        storage.create(COMMIT, b"2")
    assert storage.read(COMMIT) == b"1"
    assert files(storage) == [COMMIT]
    assert "unsafe_commit" in caplog.text


def test_a_link_whose_answer_got_lost_is_recognised(
    storage: Storage, named_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "exists", target)

    monkeypatch.setattr(os, "link", link)
    storage.create(COMMIT, b"1")
    assert storage.read(COMMIT) == b"1"


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("step", ["write", "_flush"])
@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "free space"), (errno.EDQUOT, "quota"), (errno.EIO, "device"), (errno.EFBIG, "large")],
)
def test_a_failed_write_leaves_nothing_and_says_so(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, unnamed: bool, step: str, number: int, words: str
) -> None:
    storage.create("_delta_log/x", b"1")
    if not unnamed:
        monkeypatch.setattr(local_put_if_absent, "_UNNAMED", None)
    with monkeypatch.context() as patch:
        patch.setattr(
            *((os, "write") if step == "write" else (local_put_if_absent, "_flush")), failing(number)
        )
        with pytest.raises(StorageError, match="cannot write .*nothing was written") as caught:
            storage.create(COMMIT, b"1")
    assert words in str(caught.value)
    assert type(caught.value) is StorageError
    assert files(storage) == ["_delta_log/x"]
    storage.create(COMMIT, b"1")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EACCES, "write permission"), (errno.EROFS, "read-only"), (errno.EMFILE, "ulimit")],
)
def test_a_folder_that_refuses_new_files_is_named(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    storage.create("_delta_log/x", b"1")
    real = os.open
    writing = lambda path, flags, *_: bool(flags & os.O_WRONLY)  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(number, writing, real))
        with pytest.raises(StorageError, match=rf"{storage.url}/{COMMIT}.*nothing was written.*{words}"):
            storage.create(COMMIT, b"1")
    assert files(storage) == ["_delta_log/x"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_refused(storage: Storage) -> None:
    storage.create("_delta_log/x", b"1")
    os.chmod(os.path.join(storage.url, "_delta_log"), 0o500)
    for write in (storage.create, storage.write):
        with pytest.raises(StorageError, match="permission"):
            write(COMMIT, b"1")


def test_a_file_in_place_of_the_log_folder_is_refused(storage: Storage) -> None:
    storage.write("_delta_log", b"")
    for write in (storage.create, storage.write):
        with pytest.raises(StorageError, match="cannot write .*folder"):
            write(COMMIT, b"1")


def test_a_dangling_link_in_place_of_the_log_folder_is_refused(storage: Storage) -> None:
    os.makedirs(storage.url)
    os.symlink(os.path.join(storage.url, "nowhere"), os.path.join(storage.url, "_delta_log"))
    with pytest.raises(StorageError, match="cannot write"):
        storage.create(COMMIT, b"1")


def test_a_commit_that_the_device_does_not_confirm_is_uncertain_though_it_can_be_read(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create("_delta_log/x", b"1")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(UncertainWriteError, match="did not confirm"):
        storage.create(COMMIT, b"1")
    with pytest.raises(
        UncertainWriteError, match=r"version 1 was committed.*did not confirm.*history"
    ) as caught:
        log_store_for(storage).publish(1, b"2")
    assert caught.value.parameters == {"table": storage.url, "version": 1}
    assert storage.read(relative_commit_path(1)) == b"2"


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "hidden names"])
@pytest.mark.parametrize("done", [False, True], ids=["not linked", "linked"])
def test_a_link_whose_outcome_cannot_be_looked_up_is_uncertain(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, named: bool, done: bool
) -> None:
    real = os.link
    if named:
        monkeypatch.setattr(local_put_if_absent, "_UNNAMED", None)

    def lost(*args: Any, **options: Any) -> None:
        if done:
            real(*args, **options)
        looks = "lstat" if named else "fstat"
        monkeypatch.setattr(os, looks, failing(errno.ESTALE, real=getattr(os, looks)))
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "link", lost)
    with pytest.raises(UncertainWriteError, match=r"version 0 was committed.*Stale file handle") as caught:
        log_store_for(storage).publish(0, b"1")
    monkeypatch.undo()
    assert isinstance(caught.value.__cause__, UncertainWriteError)
    assert storage.exists(COMMIT) == done


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2")
@pytest.mark.usefixtures("no_links")
def test_a_rename_whose_answer_got_lost_is_recognised(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local_put_if_absent._rename_without_replacing

    def lost(source: str, target: str) -> int:
        real(source, target)
        return errno.ENOENT  # as of a repeated request that finds its source gone

    monkeypatch.setattr(local_put_if_absent, "_rename_without_replacing", lost)
    storage.create(COMMIT, b"1")
    assert storage.read(COMMIT) == b"1"


def test_an_error_of_closing_does_not_undo_a_commit(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create("_delta_log/x", b"1")
    real = os.close

    def close(file: int) -> None:
        real(file)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", close)
        storage.create(COMMIT, b"1")
    assert storage.read(COMMIT) == b"1"


def test_folders_that_cannot_be_flushed_are_left_at_that(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    storage.create(COMMIT, b"1")
    assert storage.read(COMMIT) == b"1"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_files_that_cannot_be_flushed_are_not_settled(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    storage.write("old", b"old")
    monkeypatch.setattr(os, "fsync", failing(number))
    stream = storage.open_output("part.parquet")
    stream.write(b"1")
    stream.close()
    with pytest.raises(StorageError, match="cannot write .*no version of the table refers to it"):
        storage.fsync(["part.parquet"])
    with pytest.raises(StorageError, match="nothing was written"), storage.replace_file("old") as replaced:
        replaced.write(b"new")
    assert files(storage) == ["old", "part.parquet"]
    assert storage.read("old") == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named_by_the_stream(storage: Storage) -> None:
    os.makedirs(storage.url)
    os.symlink("/dev/full", os.path.join(storage.url, "part.parquet"))
    with (
        pytest.raises(StorageError, match=r"part\.parquet: No space left.*free space"),
        storage.open_output("part.parquet") as stream,
    ):
        stream.write(b"1" * (1 << 22))


def test_a_file_that_cannot_be_deleted_is_named(storage: Storage) -> None:
    storage.write("folder/x", b"1")
    with pytest.raises(StorageError, match="cannot delete .*folder"):
        storage.delete(["folder"])


# The system calls of a create, in order: a process dies before or after any of them.
_UNNAMED_STEPS = ["open", "write", "_flush", "link", "fsync", "close"]
_NAMED_STEPS = ["open", "write", "_flush", "link", "unlink", "fsync", "close"]

_DIE = """
import os, signal, sys
from delta_ds.kernel.storage import local_output, local_put_if_absent
from delta_ds.kernel.storage.open import open_storage
table, step, when, named, nth = sys.argv[1:]
storage = open_storage(table)
if named == "named":
    local_put_if_absent._UNNAMED = None
owner = local_put_if_absent if step.startswith("_") else os
real, calls = getattr(owner, step), []
def dying(*args, **options):
    calls.append(1)
    if when == "before" and len(calls) == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)
    if when == "half" and len(calls) == int(nth):
        real(args[0], args[1][: len(args[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **options)
    if when == "after" and len(calls) == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(owner, step, dying)
storage.create("_delta_log/00000000000000000000.json", b"from the dead" * 1000)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize(
    ("kind", "step", "when"),
    [
        (kind, step, when)
        for kind, steps in (("unnamed", _UNNAMED_STEPS), ("named", _NAMED_STEPS))
        for step in steps
        for when in ("before", "after", *(["half"] if step == "write" else []))
    ],
)
def test_a_writer_killed_at_any_step_leaves_a_whole_commit_or_none(
    storage: Storage, kind: str, step: str, when: str
) -> None:
    storage.write("_delta_log/x", b"")
    nth = "2" if step in ("open", "close") else "1"  # the first one is the folder's
    died = subprocess.run([sys.executable, "-c", _DIE, storage.url, step, when, kind, nth], check=False)
    assert died.returncode == -9
    listed = [s.path for s in storage.list_from("_delta_log", "0")]
    assert listed in ([COMMIT, "_delta_log/x"], ["_delta_log/x"])
    if COMMIT in listed:
        assert storage.read(COMMIT) == b"from the dead" * 1000
        with pytest.raises(FileExistsError):
            storage.create(COMMIT, b"next")
    else:
        storage.create(COMMIT, b"next")
        assert storage.read(COMMIT) == b"next"
    left = [path for path in files(storage) if path not in (COMMIT, "_delta_log/x")]
    assert all(path.startswith("_delta_log/.") and path.endswith(".tmp") for path in left)
    assert kind == "named" or left == []


def test_creating_needs_neither_fsspec_nor_pyarrow(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys; from delta_ds.kernel.storage.open import open_storage\n"
        "from delta_ds.kernel.storage.open import log_store_for\n"
        f"storage = open_storage({str(tmp_path)!r}); log_store_for(storage).publish(0, b'1')\n"
        "print([m for m in ('fsspec', 'pyarrow', 'numpy', 'botocore', 'ctypes') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_create_costs_few_system_calls(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.create("_delta_log/x", b"1")
    calls = []
    for name in ("open", "close", "write", "link", "unlink", "fsync", "stat", "mkdir", "listdir", "rename"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, _n=name, _r=real, **k: calls.append(_n) or _r(*a, **k))
    storage.create(COMMIT, b"1")
    if local_put_if_absent._UNNAMED is not None:
        assert calls == ["open", "open", "write", "link", "close", "fsync", "close"]


def test_many_files_are_settled_in_one_go(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"p={n}/part.parquet" for n in range(20)]
    for path in paths:
        with storage.open_output(path) as stream:
            stream.write(b"1")
    flushed = []
    monkeypatch.setattr(local_output, "_flush_filesystem", lambda root: not flushed.append(root))
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    storage.fsync(paths)
    assert flushed == [storage.url]


def test_few_files_are_settled_with_their_folders(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with storage.open_output("a/b/part.parquet") as stream:
        stream.write(b"1")
    flushed = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: flushed.append(os.readlink(f"/proc/self/fd/{file}")) or real(file)
    )
    storage.fsync(["a/b/part.parquet"])
    below = [path.removeprefix(os.path.realpath(storage.url)) for path in flushed]
    assert sorted(below) == ["", "/a", "/a/b", "/a/b/part.parquet"]
