"""Which clients of stores are used again, and which options they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError, NotADeltaTableError, StorageError
from delta_ds.kernel.storage.open import open_plain, open_storage
from delta_ds.kernel.storage.settings.vocabulary import names_of
from delta_ds.kernel.storage.uri import parse_address


class Store(MemoryFileSystem):
    """A store that answers only with the credentials that its environment has when it is made."""

    protocol = "guarded"
    made: list[Store] = []

    def __init__(self, *args: Any, key: str | None = None, **options: Any) -> None:
        import os

        super().__init__(*args, **options)
        self.key = key or os.environ.get("AWS_ACCESS_KEY_ID")
        self.made.append(self)

    def cat_file(self, path: str, **how: Any) -> bytes:
        if self.key is None:
            raise PermissionError("no credentials")
        found: bytes = super().cat_file(path, **how)
        return found


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    Store.made.clear()
    fsspec.register_implementation("guarded", Store, clobber=True)
    yield
    Store.made.clear()


def test_credentials_given_after_a_failure_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeltaLog("guarded://bucket/table")
    with pytest.raises(StorageError, match="no credentials"):
        log.snapshot()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    for again in (log, DeltaLog("guarded://bucket/table")):  # an old handle and a new one
        with pytest.raises(NotADeltaTableError):
            again.snapshot()


def test_a_client_that_failed_is_made_anew_even_if_nothing_seems_to_have_changed() -> None:
    for _ in range(2):
        with pytest.raises(StorageError, match="no credentials"):
            DeltaLog("guarded://bucket/table").snapshot()
    assert len(Store.made) == 2


def test_a_client_that_works_is_used_again_and_one_of_other_options_or_environment_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def open_with(**options: Any) -> None:
        with pytest.raises(NotADeltaTableError):
            DeltaLog("guarded://bucket/table", storage_options=options).snapshot()

    open_with(key="a")
    open_with(key="a")
    assert len(Store.made) == 1
    open_with(key="b")
    assert len(Store.made) == 2
    monkeypatch.setenv("AWS_PROFILE", "other")
    open_with(key="b")
    assert len(Store.made) == 3


@pytest.mark.parametrize(
    ("address", "name", "near"),
    [
        ("s3://lake/t", "secrt", "secret"),
        ("s3://lake/t", "endpoint_ulr", "endpoint_url"),
        ("s3://lake/t", "ddbTablName", "ddbTableName"),
        ("gs://lake/t", "projekt", "project"),
        ("abfss://c@account.dfs.core.windows.net/t", "acount_key", "account_key"),
        ("hdfs://host/t", "kerberos_keytb", "kerberos_keytab"),
        ("webhdfs://host/t", "pasword", "password"),
        ("/tmp/no table", "alowUnsafeCommits", "allowUnsafeCommits"),
        ("/tmp/no table", "aws_regoin", "aws_region"),
        ("/tmp/no table", "AWS_REGOIN", "AWS_REGION"),
        ("/tmp/no table", "fs.s3a.acess.key", "fs.s3a.access.key"),
        ("/tmp/no table", "acount_key", "account_key"),
    ],
)
def test_a_mistyped_option_is_refused_with_the_nearest_name(address: str, name: str, near: str) -> None:
    package = {"s3": "s3fs", "gs": "gcsfs", "abfss": "adlfs"}.get(address.partition(":")[0])
    if package:
        pytest.importorskip(package)
    with pytest.raises(InvalidOptionError, match=f"unknown storage option '{name}'.*did you mean '{near}'"):
        DeltaLog(address, storage_options={name: "x"}).snapshot()


def test_a_mistyped_option_of_a_stores_own_client_is_an_option_error() -> None:
    pytest.importorskip("s3fs")
    options = {"key": "k", "secret": "s", "client_kwargs": {"regon_name": "x"}}
    with pytest.raises(InvalidOptionError, match="'regon_name'"):
        DeltaLog("s3://lake/t", storage_options=options).snapshot()


def test_the_options_of_other_stores_mean_nothing_to_a_local_table(tmp_path: Any) -> None:
    assert open_storage(tmp_path, {"key": "k", "secret": "s", "endpoint_url": "x"}).url == str(tmp_path)


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs", "hdfs"])
def test_every_option_that_a_store_knows_may_be_given_to_a_local_table(scheme: str, tmp_path: Any) -> None:
    for name in (*names_of(scheme), "fs.s3a.bucket.lake.endpoint", "dfs.nameservices", "use_listings_cache"):
        assert open_plain(parse_address(str(tmp_path)), {name: "x"}).url == str(tmp_path)


def test_an_option_that_no_store_knows_is_refused_of_a_local_table(tmp_path: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"unknown storage option 'zzz'.*allowUnsafeCommits"):
        open_storage(tmp_path, {"zzz": "x"})
