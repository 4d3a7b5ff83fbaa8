"""Net changes by Spark's plans, by the data source alone and by streams: the same as the kernel's."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import (
    DeltaLog,
    DeltaTable,
    InvalidOptionError,
    InvariantViolationError,
    SchemaError,
    net_changes,
)
from delta_ds.kernel.commands.changes.net_memory import net_batches
from delta_ds.spark.base.kinds.frames import frame_of

pytestmark = pytest.mark.long

NESTED = pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("l", pa.list_(pa.float64()))])
SCHEMA = pa.schema(
    [
        ("a key", pa.int64()), ("b", pa.string()), ("x.y", pa.float64()), ("__pydelta_puts", NESTED),
        ("_change_type", pa.string()), ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
VALUES: list[tuple[Any, Any]] = [
    (0.0, None),
    (-0.0, None),
    (float("nan"), {"m": [("k", 1)], "l": [None, float("nan")]}),
    (None, {"m": None, "l": []}),
    (1.5, {"m": [("k", None), ("j", 2)], "l": [0.0]}),
]


def random_feed(seed: int, keys: int, versions: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    state: dict[tuple[int | None, str | None], tuple[Any, Any]] = {}
    feed = []
    for version in range(1, versions + 1):
        for key in [(n if n % 7 else None, None if n % 5 == 0 else f"b{n}") for n in range(1, keys)]:
            if dice.random() > 0.4:
                continue
            before = state.pop(key, None)
            after = dice.choice([None, *VALUES]) if before is not None else dice.choice(VALUES)
            update = before is not None and after is not None and dice.random() < 0.7
            sides = [
                (before, "update_preimage" if update else "delete"),
                (after, "update_postimage" if update else "insert"),
            ]
            for value, kind in sides:
                if value is not None:
                    moment = datetime.fromtimestamp(version, timezone.utc)
                    feed.append(dict(zip(SCHEMA.names, (*key, *value, kind, version, moment), strict=True)))
            if after is not None:
                state[key] = after
    return feed


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([*list(row.values())[:-1], row["_commit_timestamp"].timestamp()]) for row in rows)


@pytest.mark.parametrize("net", ["net", "latest"])
def test_sparks_plan_gives_what_the_kernel_gives(spark: SparkSession, net: Any) -> None:
    feed = pa.Table.from_pylist(random_feed(7, 34, 9), SCHEMA)
    keys = ["a key", "b"]
    expected = [row for b in net_batches(feed.to_batches(), SCHEMA, keys, net, "t") for row in b.to_pylist()]
    mixed = feed.take(random.Random(1).sample(range(feed.num_rows), feed.num_rows))
    found = net_changes(frame_of(spark, mixed), ["A KEY", "b"], net)
    assert found.columns == SCHEMA.names
    assert as_text(found.toArrow().to_pylist()) == as_text(expected) and len(expected) > 20


def test_a_table_is_netted_the_same_on_every_way_to_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.createDataFrame([(n, f"t{n}") for n in range(6)], "id long, t string").coalesce(1)
    rows.write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"t": "'new'"})
    table.delete("id = 2")
    table.update("id = 3", {"t": "t"})
    spark.createDataFrame([(7, "seven")], "id long, t string").write.format("pydelta").mode("append").save(
        path
    )
    table.delete("id = 7")
    columns = ["id", "t", "_change_type", "_commit_version"]
    found = {
        (1, "t1", "update_preimage", 1), (1, "new", "update_postimage", 1), (2, "t2", "delete", 2),
    }  # fmt: skip
    kernel = DeltaLog(path).changes(1, net="net", keys=["id"]).to_arrow().select(columns).to_pylist()
    assert {tuple(row.values()) for row in kernel} == found
    by_spark = {
        "readChangeFeed": True,
        "startingVersion": 1,
        "net": "net",
        "keys": "id",
        "maxPartitionBytes": 1000,
    }
    answers = [
        spark.read.format("pydelta").options(**by_spark).load(path),
        table.changes(1, net="net", keys=["ID"]),
        spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 1, NULL, 'net', 'id')"),
        spark.sql(
            f"SELECT * FROM pydelta('{path}', 'readChangeFeed', true, 'startingVersion', 1, 'net', 'net', 'keys', 'id')"
        ),
    ]
    for frame in answers:
        assert {tuple(row) for row in frame.select(columns).collect()} == found
    read = spark.read.format("pydelta").options(
        readChangeFeed=True, startingVersion=1, net="latest", keys="id"
    )
    latest = read.option("columns", "_change_type, t").load(path)
    assert latest.columns == ["_change_type", "t"]
    assert sorted(latest.collect()) == [
        ("delete", "seven"), ("delete", "t2"), ("update_postimage", "new"), ("update_postimage", "t3"),
    ]  # fmt: skip
    given = read.schema("t string, _commit_version long").load(path)
    assert sorted(given.collect()) == [("new", 1), ("seven", 5), ("t2", 2), ("t3", 3)]

    batches: list[set[Any]] = []
    stream = spark.readStream.format("pydelta").options(
        readChangeFeed=True, startingVersion=1, net="net", keys="id", columns="t, _change_type"
    )
    query = stream.load(path).writeStream.foreachBatch(
        lambda b, _: batches.append({tuple(r) for r in b.collect()})
    )
    query.trigger(availableNow=True).start().awaitTermination()
    assert batches == [{row[1:3] for row in found}]

    with pytest.raises(
        InvariantViolationError, match=r'netted by t, .*\{"t":"t0","_commit_version":6\}'
    ) as raised:
        rows.where("id = 0").write.format("pydelta").mode("append").save(path)
        table.changes(0, net="net", keys=["t"]).collect()
    assert raised.value.condition == "DELTA_NET_CHANGES_DUPLICATE_KEY"
    with pytest.raises(InvariantViolationError, match=r'netted by t, .*\{"t":"t0","_commit_version":6\}'):
        spark.read.format("pydelta").options(**{**by_spark, "startingVersion": 0, "keys": "t"}).load(
            path
        ).collect()
    with pytest.raises(InvariantViolationError, match="netted by id"):
        table.changes(0, net="latest", keys=["id"]).collect()
    with pytest.raises(SchemaError, match="'idd', which is no column; did you mean 'id'"):
        table.changes(1, net="net", keys=["idd"])
    with pytest.raises(InvalidOptionError, match="needs 'keys'"):
        table.changes(1, net="net")
    with pytest.raises(InvalidOptionError, match="'net' needs readChangeFeed"):
        spark.read.format("pydelta").options(net="net", keys="id").load(path)
    with pytest.raises(
        SchemaError, match="_change_type, _commit_version, _commit_timestamp is missing among id, t"
    ):
        net_changes(table.toDF(), ["id"])
    with pytest.raises(InvalidOptionError, match="takes a table"):
        spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 1, 2, 'net')").collect()


def test_the_data_source_alone_nets_in_one_task(plain: SparkSession, tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"id": [1, 2], "t": ["a", "b"]}), options={"delta.enableChangeDataFeed": "true"})
    log.write(pa.table({"id": [2, 3], "t": ["b", "c"]}), mode="overwrite")
    read = plain.read.format("pydelta").options(readChangeFeed=True, startingVersion=1, net="net", keys="id")
    found = read.load(str(tmp_path / "t"))
    assert sorted(found.select("_change_type", "id").collect()) == [("delete", 1), ("insert", 3)]
    assert found.rdd.getNumPartitions() == 1
    with pytest.raises(Exception, match="DELTA_NET_CHANGES_WITHOUT_KEYS"):
        plain.read.format("pydelta").options(readChangeFeed=True, startingVersion=1, net="net").load(
            str(tmp_path / "t")
        ).collect()
