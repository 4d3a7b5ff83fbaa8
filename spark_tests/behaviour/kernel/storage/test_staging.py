"""Who owns files until their version is published, and when they are deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_ds.exceptions import (
    ConcurrentAppendException,
    DeltaError,
    SchemaError,
    StorageError,
    UncertainWriteError,
)
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.staging import Outcome, StagedFiles, Staging

NOT_PUBLISHED = (SchemaError("x"), StorageError("x"), ConcurrentAppendException("x"), FileExistsError("x"))
UNKNOWN = (
    UncertainWriteError("x"),
    KeyboardInterrupt(),
    SystemExit(),
    MemoryError(),
    RuntimeError("x"),
    OSError("x"),
)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    (tmp_path / "a b").write_bytes(b"1")
    return open_storage(tmp_path)


@pytest.mark.parametrize("error", [*NOT_PUBLISHED, *UNKNOWN], ids=lambda error: type(error).__name__)
def test_only_an_error_that_says_so_gives_files_back(storage: Storage, error: BaseException) -> None:
    with pytest.raises(type(error)), StagedFiles(storage, ["a%20b"]) as staged, staged.publishing():
        raise error
    assert storage.exists("a b") == (error in UNKNOWN)
    assert staged.outcome is (Outcome.UNKNOWN if error in UNKNOWN else Outcome.NOT_PUBLISHED)


@pytest.mark.parametrize("error", [*NOT_PUBLISHED, *UNKNOWN, None], ids=lambda error: type(error).__name__)
def test_what_never_came_to_be_published_is_deleted(storage: Storage, error: BaseException | None) -> None:
    with pytest.raises(type(error)) if error else StagedFiles(storage), StagedFiles(storage, ["a%20b"]):
        if error is not None:
            raise error
    assert not storage.exists("a b")


@pytest.mark.parametrize("error", [*NOT_PUBLISHED, *UNKNOWN], ids=lambda error: type(error).__name__)
def test_nothing_after_publishing_takes_a_file_away(storage: Storage, error: BaseException) -> None:
    with pytest.raises(type(error)), StagedFiles(storage, ["a%20b"]) as staged:
        with staged.publishing():
            pass
        raise error
    assert storage.exists("a b")
    with pytest.raises(type(error)), staged, staged.publishing():
        raise error
    assert storage.exists("a b")


def test_a_lost_attempt_may_be_followed_by_another(storage: Storage) -> None:
    with StagedFiles(storage, ["a%20b"]) as staged:
        with pytest.raises(FileExistsError), staged.publishing():
            raise FileExistsError
        assert staged.outcome is Outcome.NOT_PUBLISHED
        with staged.publishing():
            pass
    assert storage.exists("a b")


def test_what_is_released_belongs_to_somebody_else(storage: Storage) -> None:
    with pytest.raises(SchemaError), StagedFiles(storage, ["a%20b"]) as staged:
        staged.release()
        raise SchemaError("x")
    assert storage.exists("a b")


def test_what_cannot_be_deleted_does_not_hide_the_error(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def fails() -> None:
        done.append("tried")
        raise RuntimeError("the gateway is gone")

    with pytest.raises(SchemaError, match="the cause"), Staging(storage.url) as staged:
        staged.deleted_by(fails)
        staged.deleted_by(lambda: done.append("next"))
        raise SchemaError("the cause")
    assert done == ["tried", "next"]
    assert "orphan_files_left" in caplog.text
    assert "the gateway is gone" in caplog.text


def test_files_are_named_by_the_commit_that_names_the_first(storage: Storage) -> None:
    staged = StagedFiles(storage, ["a%20b", "c"])
    assert staged.is_named_in(b'{"add":{"path":"a%20b"}}')
    assert not staged.is_named_in(b'{"add":{"path":"d"}}')
    assert not StagedFiles(storage).is_named_in(b"{}")


def test_an_interrupt_while_deleting_is_not_swallowed(storage: Storage) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Staging(storage.url) as staged:
        staged.deleted_by(interrupted)
        raise DeltaError("x")
