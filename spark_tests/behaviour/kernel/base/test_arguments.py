"""Arguments of the kernel's public methods: a wrong kind is told when the method is called, by the argument's name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.api.snapshot import Scan, Snapshot
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base import arguments
from delta_ds.kernel.transaction.transaction import Transaction


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    found = DeltaLog(tmp_path)
    found.write(pa.table({"id": [1, 2]}))
    return found


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda log: DeltaLog(1), "path"),
        (lambda log: DeltaLog(b"/tmp/t"), "path"),
        (lambda log: DeltaLog("/tmp/t", [("key", "k")]), "storage_options"),
        (lambda log: DeltaLog("/tmp/t", {1: "k"}), "storage_options"),
        (lambda log: log.snapshot("7"), "version"),
        (lambda log: log.snapshot(version="7"), "version"),
        (lambda log: log.snapshot(version=True), "version"),
        (lambda log: log.snapshot(version=0.0), "version"),
        (lambda log: log.snapshot(timestamp="2024-01-01"), "timestamp"),
        (lambda log: log.snapshot(timestamp=date(2024, 1, 1)), "timestamp"),
        (lambda log: log.snapshot(timestamp=1.5), "timestamp"),
        (lambda log: log.history("3"), "limit"),
        (lambda log: log.changes("0"), "start"),
        (lambda log: log.changes(0, starting_timestamp="now"), "starting_timestamp"),
        (lambda log: log.changes(0, timezone=3), "timezone"),
        (lambda log: log.start_transaction("1"), "version"),
        (lambda log: log.start_transaction(create="yes"), "create"),
        (lambda log: log.write({"id": [1]}), "rows"),
        (lambda log: log.write([{"id": 1}]), "rows"),
        (lambda log: log.write(None), "rows"),
        (lambda log: log.write(pa.table({"id": [1]}), 1), "mode"),
        (lambda log: log.write(pa.table({"id": [1]}), options=["mergeSchema"]), "options"),
        (lambda log: log.snapshot().scan(5), "predicate"),
        (lambda log: log.snapshot().scan(None, "id"), "columns"),
        (lambda log: log.snapshot().scan(None, [1]), "columns"),
        (lambda log: log.snapshot().scan(timezone=None), "timezone"),
        (lambda log: log.snapshot().scan(metadata_columns="file_path"), "metadata_columns"),
        (lambda log: log.snapshot().files(True), "predicate"),
        (lambda log: log.snapshot().scan().tasks("1"), "max_partition_bytes"),
        (lambda log: log.start_transaction().add("x.parquet"), "body"),
        (lambda log: log.start_transaction().remove(None), "body"),
        (lambda log: log.start_transaction().add_all({"path": "x"}), "bodies"),
        (lambda log: log.start_transaction().read_files("x.parquet"), "paths"),
        (lambda log: log.start_transaction().read_partitions({"p": "1"}), "partitions"),
        (lambda log: log.start_transaction().set_txn("app", "1"), "version"),
        (lambda log: log.start_transaction().set_txn(1, 1), "app_id"),
        (lambda log: log.start_transaction().set_metadata({"id": "x"}), "metadata"),
        (lambda log: log.start_transaction().set_protocol((1, 2)), "protocol"),
        (lambda log: log.start_transaction().set_domain_metadata("d", {"a": 1}), "configuration"),
        (lambda log: log.start_transaction().remove_live([0]), "rows"),
        (lambda log: log.start_transaction().commit(None), "operation"),
        (lambda log: log.start_transaction().commit("WRITE", "mode"), "parameters"),
        (lambda log: log.start_transaction().commit("WRITE", retry=1), "retry"),
    ],
)
def test_a_wrong_kind_is_named_with_what_is_expected(
    log: DeltaLog, call: Callable[[Any], Any], name: str
) -> None:
    with pytest.raises(TypeError, match=rf"\(\): {name} must be .*, not "):
        call(log)
    assert DeltaLog(log.storage).snapshot().version == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.snapshot(version=-1),
        lambda log: log.history(-1),
        lambda log: log.changes(-1),
        lambda log: log.changes(0, -1),
        lambda log: log.start_transaction(-1),
        lambda log: log.snapshot(version=0, timestamp=0),
        lambda log: log.write(pa.table({"id": [1]}), "appnd"),
    ],
)
def test_numbers_and_words_out_of_range_are_value_errors(log: DeltaLog, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError):
        call(log)


def test_rows_of_other_packages_are_told_how_to_become_arrow(log: DeltaLog) -> None:
    with pytest.raises(TypeError, match=r"pass pyarrow.table\(rows\)"):
        log.write({"id": [1]})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"pass pyarrow.Table.from_pylist\(rows\)"):
        log.write([{"id": 1}])  # type: ignore[arg-type]
    kind = type("DataFrame", (), {"__module__": "pandas.core.frame"})
    with pytest.raises(TypeError, match=r"pass pyarrow.Table.from_pandas\(rows\)"):
        log.write(kind())


def test_a_mistyped_option_of_a_write_is_refused_with_the_nearest_name(log: DeltaLog) -> None:
    with pytest.raises(InvalidOptionError, match="mergeSchema"):
        log.write(pa.table({"id": [1]}), options={"mergeSchem": "true"})
    with pytest.raises(InvalidOptionError, match="did you mean options={'mergeSchema': True}"):
        log.write(pa.table({"id": [1]}), mergeShema=True)
    with pytest.raises(InvalidOptionError, match="options={'mergeSchema': True}"):
        log.write(pa.table({"id": [1]}), mergeSchema=True)


@pytest.mark.parametrize("cls", [DeltaLog, Snapshot, Scan, Transaction])
def test_every_parameter_of_a_public_method_has_a_check(cls: type) -> None:
    unchecked = {
        f"{name}.{parameter}: {annotation}"
        for name, method in vars(cls).items()
        if inspect.isfunction(method) and not name.startswith("_")
        for parameter, annotation in method.__annotations__.items()
        if parameter not in ("return", "misnamed") and parameter not in arguments._rules(method)
    }
    assert unchecked == set()
