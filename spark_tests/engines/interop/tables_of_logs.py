"""Tables by what lies in their log: checkpoints of every kind, and logs whose beginning is gone."""

from __future__ import annotations

import os
from typing import Any

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import INTEGER, LONG, STRING
from delta_ds.kernel.log.cleanup import clean_up
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from spark_tests.engines.interop.tables_of_features import domain
from spark_tests.engines.interop.tables_of_types import FLAT, FLAT_ROWS, NESTED, NESTED_ROWS
from spark_tests.engines.interop.written import ALL_STEPS, Row, Written, case, struct

PLAIN = struct(id=LONG, text=STRING)
DAY_MS = 86_400_000
V2 = {"delta.checkpointPolicy": "v2"}
ONLY_STRUCT = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
ONLY_JSON = {"delta.checkpoint.writeStatsAsJson": "true", "delta.checkpoint.writeStatsAsStruct": "false"}


def rows(first: int, last: int, **rest: Any) -> list[Row]:
    return [{"id": i, "text": f"row {i}", **rest} for i in range(first, last + 1)]


def checkpointed(table: Written) -> None:
    """Write a checkpoint of the latest version, and take away the commits that made it."""
    write_checkpoint(table.log.storage, table.log.open_snapshot().segment)
    latest = table.log.snapshot().version
    for version in range(latest):
        for name in (f"{version:020}.json", f"{version:020}.crc"):
            (table.path / "_delta_log" / name).unlink(missing_ok=True)
        table.versions.pop(version, None)


FILTERS = {
    "id = 1": 1, "number = -2147483648": 1, "text = ''": 1, "cents = -999.99": 1, "day < DATE'1582-01-01'": 1,
    "moment > TIMESTAMP'9999-01-01 00:00:00Z'": 1, "double > 1e300": 1, "amount = 12345678901234.5678": 1,
}  # fmt: skip


def _flat(table: Written, properties: dict[str, str]) -> None:
    table.create(FLAT, properties=properties)
    for part in (FLAT_ROWS[:1], FLAT_ROWS[1:2], FLAT_ROWS[2:4], FLAT_ROWS[4:]):
        table.append(part)
    table.overwrite([], FLAT, keeps=lambda row: row["id"] != 5, replaceWhere="id = 5")
    checkpointed(table)


@case(filters=FILTERS)
def checkpoint(table: Written) -> None:
    _flat(table, {})


@case(filters=FILTERS)
def checkpoint_with_typed_statistics_only(table: Written) -> None:
    _flat(table, ONLY_STRUCT)


@case(filters=FILTERS)
def checkpoint_with_json_statistics_only(table: Written) -> None:
    _flat(table, ONLY_JSON)


@case(steps=ALL_STEPS, checkpointed=True, filters=FILTERS)
def checkpoint_v2(table: Written) -> None:
    _flat(table, V2)


@case(filters=FILTERS)
def checkpoint_v2_with_typed_statistics_only(table: Written) -> None:
    _flat(table, {**V2, **ONLY_STRUCT})


@case(filters={"point.x = 1": 1, "point.y.z = '5'": 1})
def checkpoint_of_nested_types(table: Written) -> None:
    table.create(NESTED, properties={**ONLY_STRUCT, "delta.columnMapping.mode": "name"})
    table.append(NESTED_ROWS)
    table.append([{**NESTED_ROWS[0], "id": 4, "point": {"x": 5, "y": {"z": "5", "at": None}}}])
    checkpointed(table)


@case(filters={"p_timestamp = TIMESTAMP'2024-03-31 01:30:00Z'": 1, "p_decimal = 0": 1, "p_integer = 0": 1})
def checkpoint_of_partitions(table: Written) -> None:
    from spark_tests.engines.interop.tables_of_layouts import partitions_of_every_type

    partitions_of_every_type(table)
    checkpointed(table)


@case(steps=ALL_STEPS, checkpointed=True, deltalake_writes="RowTracking", filters={"id = 5": 1}, row_ids=True)
def checkpoint_v2_of_everything(table: Written) -> None:
    properties = {
        **V2, "delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true",
        "delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "id",
        "delta.enableChangeDataFeed": "true",
    }  # fmt: skip
    table.create(struct(id=LONG, text=STRING, p=INTEGER), ["p"], properties)
    table.append(rows(1, 9, p=1), maxRecordsPerFile=2, txnAppId="app", txnVersion=3)
    table.change(domain, "app.one", "{}")
    table.change(domain, "app.two", "{}")
    table.change(domain, "app.two", None)
    table.overwrite(
        [], struct(id=LONG, text=STRING, p=INTEGER), keeps=lambda r: r["id"] != 3, replaceWhere="id = 3"
    )
    checkpointed(table)


@case(filters={"id = 12": 1})
def checkpoint_interval(table: Written) -> None:
    table.create(PLAIN, properties={"delta.checkpointInterval": "4"})
    for i in range(1, 14):
        table.append(rows(i, i))
    found = sorted(name for name in os.listdir(table.path / "_delta_log") if ".checkpoint." in name)
    assert [int(name[:20]) for name in found] == [4, 8, 12]


def expire(log: DeltaLog) -> None:
    """Age all commits but the latest ones by a year, and clean up the log."""
    folder = log.storage.url + "/_delta_log"
    latest = log.snapshot().version
    for name in sorted(os.listdir(folder)):
        if name[:20].isdigit() and int(name[:20]) < latest - 2:
            status = os.stat(f"{folder}/{name}")
            os.utime(f"{folder}/{name}", (status.st_mtime - 365 * 86400,) * 2)
    assert clean_up(log.storage)


def _cleaned(table: Written, properties: dict[str, str]) -> None:
    table.create(PLAIN, properties={"delta.checkpointInterval": "3", **properties})
    for i in range(1, 12):
        table.append(rows(i, i))
    expire(table.log)
    first = min(
        int(n[:20])
        for n in os.listdir(table.path / "_delta_log")
        if n.endswith(".json") and n[:20].isdigit() and len(n) == 25
    )
    assert first > 0
    for version in range(first):
        table.versions.pop(version, None)


@case(steps=ALL_STEPS, checkpointed=True, filters={"id = 10": 1})
def cleaned_log(table: Written) -> None:
    _cleaned(table, {})


@case(filters={"id = 10": 1})
def cleaned_log_with_v2_checkpoints(table: Written) -> None:
    _cleaned(table, V2)
