"""Tables of every feature that asks something of writers."""

from __future__ import annotations

import datetime as dt
from typing import Any

from delta_ds import DeltaLog
from delta_ds.kernel.commands.drop_feature import drop_feature_support
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    StructField,
    StructType,
)
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from delta_ds.kernel.transaction.alter.columns import add_columns
from delta_ds.kernel.transaction.alter.definitions import add_constraint, drop_constraint
from delta_ds.kernel.transaction.alter.properties import (
    add_feature_support,
    set_properties,
    unset_properties,
    upgrade_table_protocol,
)
from spark_tests.engines.interop.written import ALL_STEPS, Row, Written, case, struct

UTC = dt.timezone.utc
PLAIN = struct(id=LONG, text=STRING)
PARTITIONED = struct(id=LONG, text=STRING, p=INTEGER)


def rows(first: int, last: int, **rest: Any) -> list[Row]:
    return [{"id": i, "text": f"row {i}", **rest} for i in range(first, last + 1)]


def is_kept(last: int) -> Any:
    return lambda row: row["id"] <= last


# --- deletion vectors, row ids, the change feed


@case(steps=ALL_STEPS, checkpointed=True)
def deletion_vectors(table: Written) -> None:
    table.create(PLAIN, properties={"delta.enableDeletionVectors": "true"})
    table.append(rows(1, 4))
    table.append(rows(5, 8))
    table.overwrite(rows(8, 9), keeps=is_kept(7), replaceWhere="id > 7")


@case(steps=ALL_STEPS, checkpointed=True, deltalake_writes="RowTracking", row_ids=True)
def row_tracking(table: Written) -> None:
    table.create(PLAIN, properties={"delta.enableRowTracking": "true"})
    table.append(rows(1, 3))
    table.append(rows(4, 6), maxRecordsPerFile=2)
    table.overwrite(rows(6, 9), keeps=is_kept(5), replaceWhere="id >= 6")
    table.overwrite(rows(3, 3), keeps=lambda row: row["id"] != 3, replaceWhere="id = 3")


@case(deltalake_writes="RowTracking", row_ids=True)
def row_tracking_of_an_existing_table(table: Written) -> None:
    table.create(PARTITIONED, ["p"])
    table.append([*rows(1, 2, p=1), *rows(3, 3, p=2)])
    table.change(set_properties, {"delta.enableRowTracking": "true"})
    table.append(rows(4, 5, p=1))
    table.overwrite(rows(3, 3, p=2), keeps=lambda row: row["p"] != 2, partitionOverwriteMode="dynamic")


FEED = {"delta.enableChangeDataFeed": "true"}


@case(steps=ALL_STEPS, checkpointed=True, changes=True)
def change_data_feed(table: Written) -> None:
    table.create(PARTITIONED, ["p"], FEED)
    table.append([*rows(1, 4, p=1), *rows(5, 6, p=2)])
    table.overwrite(rows(3, 3, p=1), keeps=lambda r: r["id"] not in (3, 4), replaceWhere="id = 3 OR id = 4")
    table.overwrite(rows(7, 8, p=2), keeps=lambda r: r["p"] != 2, replaceWhere="p = 2")
    table.overwrite(rows(9, 9, p=1), keeps=lambda r: r["p"] != 1, partitionOverwriteMode="dynamic")
    table.append(rows(10, 10, p=None))
    table.overwrite(rows(1, 2, p=3))
    table.overwrite(rows(1, 2, p=3), dataChange=False)


@case(steps=ALL_STEPS, checkpointed=True, deltalake_writes="RowTracking", changes=True, row_ids=True)
def change_data_feed_with_mapped_columns(table: Written) -> None:
    properties = {**FEED, "delta.columnMapping.mode": "name", "delta.enableRowTracking": "true",
                  "delta.enableDeletionVectors": "true"}  # fmt: skip
    table.create(struct(**{"id": LONG, "a b": STRING, "p": INTEGER}), ["p"], properties)
    table.append([{"id": i, "a b": f"row {i}", "p": i % 2} for i in range(1, 5)])
    table.overwrite([{"id": 2, "a b": "new", "p": 0}], keeps=lambda r: r["id"] != 2, replaceWhere="id = 2")
    table.overwrite([], StructType(struct(**{"id": LONG, "a b": STRING, "p": INTEGER}).fields),
                    keeps=lambda r: r["id"] != 3, replaceWhere="id = 3")  # fmt: skip


# --- columns that compute, number and default their values


def generated(name: str, kind: Any, expression: str) -> StructField:
    return StructField(name, kind, metadata={"delta.generationExpression": expression})


@case(
    deltalake_writes="Invalid function 'year'",
    filters={"at >= TIMESTAMP'2024-02-01 00:00:00Z'": 1, "year = 2023": 1},
    refused={"INSERT INTO {t} (id, at, year) VALUES (9, TIMESTAMP'2024-01-01 00:00:00Z', 1)": "Generated"},
    steps=(
        "INSERT INTO {t} (id, at) VALUES (9, TIMESTAMP'2025-06-07 08:09:10Z')",
        "UPDATE {t} SET at = TIMESTAMP'2022-01-01 00:00:00Z' WHERE id = 1",
        "MERGE INTO {t} USING (SELECT 10L AS id, TIMESTAMP'2025-01-01 00:00:00Z' AS at) s ON {t}.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, at) VALUES (s.id, s.at)",
        "DELETE FROM {t} WHERE id = 2",
        "OPTIMIZE {t}",
    ),
)
def generated_columns(table: Written) -> None:
    fields = (
        StructField("id", LONG),
        StructField("at", TIMESTAMP),
        generated("day", DATE, "CAST(at AS DATE)"),
        generated("year", INTEGER, "year(at)"),
        generated("next", LONG, "id + 1"),
        generated("text", STRING, "concat(upper('n'), CAST(id AS STRING))"),
    )
    table.create(StructType(fields), ["day", "year"])

    def row(i: int, year: int) -> Row:
        at = dt.datetime(year, 2, 3, 4, tzinfo=UTC)
        return {"id": i, "at": at, "day": at.date(), "year": year, "next": i + 1, "text": f"N{i}"}

    for i, year in ((1, 2023), (2, 2024)):
        table.append([{k: row(i, year)[k] for k in ("id", "at")}], becomes=[row(i, year)])
    table.append([row(3, 2022)])
    table.append([{"id": None, "at": None}], becomes=[dict.fromkeys(row(1, 1))])


def identity(name: str, start: int, step: int, explicit: bool) -> StructField:
    return StructField(name, LONG, metadata={
        "delta.identity.start": start, "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": explicit,
    })  # fmt: skip


@case(
    deltalake_writes="IdentityColumns",
    numbered=("always",),
    refused={"INSERT INTO {t} (always, id) VALUES (1, 1)": "IDENTITY"},
    steps=(
        "INSERT INTO {t} (id) VALUES (8), (9)",
        "MERGE INTO {t} USING (SELECT 10L AS id) s ON {t}.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "DELETE FROM {t} WHERE id = 2",
        "INSERT INTO {t} (id, by_default) VALUES (11, 1000)",
        "OPTIMIZE {t}",
    ),
)
def identity_columns(table: Written) -> None:
    fields = (identity("always", 1, 1, False), StructField("id", LONG), identity("by_default", -5, -10, True))
    table.create(StructType(fields))
    table.append([{"id": 1}, {"id": 2}], becomes=[
        {"id": 1, "always": 1, "by_default": -5}, {"id": 2, "always": 2, "by_default": -15},
    ])  # fmt: skip
    table.append([{"id": 3, "by_default": 7}], becomes=[{"id": 3, "always": 3, "by_default": 7}])
    table.append([{"id": 4}], becomes=[{"id": 4, "always": 4, "by_default": -25}])


@case(
    deltalake_writes="AllowColumnDefaults",
    steps=(
        "INSERT INTO {t} (id) VALUES (7)",
        "INSERT INTO {t} VALUES (8, DEFAULT, DEFAULT, DEFAULT)",
        "UPDATE {t} SET number = DEFAULT WHERE id = 3",
        "MERGE INTO {t} USING (SELECT 9L AS id) s ON {t}.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, text) VALUES (s.id, 'merged')",
        "DELETE FROM {t} WHERE id = 2",
        "OPTIMIZE {t}",
    ),
)
def column_defaults(table: Written) -> None:
    def default(name: str, kind: Any, text: str) -> StructField:
        return StructField(name, kind, metadata={"CURRENT_DEFAULT": text})

    fields = (
        StructField("id", LONG),
        default("text", STRING, "'de''fault'"),
        default("number", INTEGER, "40 + 2"),
        default("day", DATE, "DATE'2024-01-01'"),
    )
    table.create(StructType(fields), properties={"delta.feature.allowColumnDefaults": "supported"})
    day = dt.date(2024, 1, 1)
    table.append([{"id": 1}], becomes=[{"id": 1, "text": "de'fault", "number": 42, "day": day}])
    table.append([{"id": 2, "text": None}], becomes=[{"id": 2, "text": None, "number": 42, "day": day}])
    table.change(alter_column, "number", default="7")
    table.append([{"id": 3, "text": "x"}], becomes=[{"id": 3, "text": "x", "number": 7, "day": day}])
    table.change(alter_column, "day", default=None)


# --- what rows must satisfy


def trusted(expression: str) -> None:
    """The rows are known to satisfy the constraint."""


@case(
    refused={
        "INSERT INTO {t} VALUES (-1, 'x', 1)": "CHECK constraint positive|positive",
        "UPDATE {t} SET text = 'too long a text' WHERE id = 1": "short",
    }
)
def check_constraints(table: Written) -> None:
    table.create(PARTITIONED, ["p"])
    table.append(rows(1, 2, p=1))
    table.change(add_constraint, "positive", "id > 0", trusted)
    table.change(add_constraint, "Short", "length(text) < 10 OR p IS NULL", trusted)
    table.change(add_constraint, "gone", "id < 0 OR TRUE", trusted)
    table.change(drop_constraint, "gone")
    table.append(rows(3, 4, p=2))


@case(
    refused={
        "INSERT INTO {t} VALUES (NULL, NAMED_STRUCT('a', 1, 'b', 'x'))": "NOT_NULL|NOT NULL",
        "INSERT INTO {t} VALUES (9, NAMED_STRUCT('a', CAST(NULL AS INT), 'b', 'x'))": "NOT_NULL|NOT NULL",
    }
)
def not_null(table: Written) -> None:
    inner = StructType((StructField("a", INTEGER, nullable=False), StructField("b", STRING)))
    table.create(StructType((StructField("id", LONG, nullable=False), StructField("s", inner))))
    table.append([{"id": 1, "s": {"a": 1, "b": None}}, {"id": 2, "s": {"a": 2, "b": "x"}}])


INVARIANT = '{"expression":{"expression":"id > 0"}}'


@case(refused={"INSERT INTO {t} VALUES (-1, 'x')": "id > 0|CHECK"})
def invariants(table: Written) -> None:
    fields = (StructField("id", LONG, metadata={"delta.invariants": INVARIANT}), StructField("text", STRING))
    table.create(StructType(fields))
    table.append(rows(1, 3))


@case(
    refused={"DELETE FROM {t} WHERE id = 1": "APPEND_ONLY|append"},
    steps=("INSERT INTO {t} SELECT id + 10, text FROM {t}", "OPTIMIZE {t}"),
)
def append_only(table: Written) -> None:
    table.create(PLAIN, properties={"delta.appendOnly": "true"})
    table.append(rows(1, 2))
    table.append(rows(3, 3))


# --- the commit and the protocol


@case(steps=ALL_STEPS, checkpointed=True, deltalake_writes="InCommitTimestamp")
def in_commit_timestamps(table: Written) -> None:
    table.create(PLAIN, properties={"delta.enableInCommitTimestamps": "true"})
    table.append(rows(1, 2))
    table.append(rows(3, 3))


@case(deltalake_writes="InCommitTimestamp")
def in_commit_timestamps_of_an_existing_table(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 2))
    table.change(set_properties, {"delta.enableInCommitTimestamps": "true"})
    table.append(rows(3, 3))


@case(
    steps=ALL_STEPS, checkpointed=True, deltalake_writes="ClusteredTable", filters={"s.a = 3": 1, "id = 1": 1}
)
def clustering(table: Written) -> None:
    schema = struct(id=LONG, s=struct(b=STRING, a=INTEGER), text=STRING)
    table.create(schema, properties={"delta.dataSkippingStatsColumns": "s.a,id"}, cluster_by=["id", "s.a"])
    table.append([{"id": 1, "s": {"a": 1, "b": "x"}}, {"id": 2, "s": None}])
    table.change(cluster_by, ["s.a"])
    table.append([{"id": 3, "s": {"a": 3, "b": "x"}}])


@case(deltalake_writes="ClusteredTable")
def clustering_of_mapped_columns(table: Written) -> None:
    table.create(PLAIN, properties={"delta.columnMapping.mode": "name"}, cluster_by=["text"])
    table.append(rows(1, 3))
    table.change(cluster_by, [])
    table.append(rows(4, 4))
    table.change(cluster_by, ["id"])


def domain(log: DeltaLog, name: str, text: str | None) -> None:
    transaction = log.start_transaction()
    if text is None:
        transaction.remove_domain_metadata(name)
    else:
        transaction.set_domain_metadata(name, text)
    transaction.commit("Manual Update")


@case(deltalake_writes="DomainMetadata")
def domain_metadata(table: Written) -> None:
    table.create(PLAIN, properties={"delta.feature.domainMetadata": "supported"})
    table.append(rows(1, 2))
    table.change(domain, "app.one", '{"a": 1}')
    table.change(domain, "app.two", 'any text, "quoted" \n')
    table.change(domain, "app.one", None)


@case()
def application_transactions(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 2), txnAppId="app", txnVersion=7, userMetadata='what I say "here" ü')
    before = table.rows
    table.append(rows(1, 2), txnAppId="app", txnVersion=7)  # left out: it is there
    table.rows = before
    table.versions[table.log.snapshot().version] = before


@case()
def described(table: Written) -> None:
    properties = {"own.key": "any ü", "delta.logRetentionDuration": "interval 60 days"}
    table.create(PLAIN, properties=properties, name="named", description='described "so"')
    table.append(rows(1, 2))
    table.change(alter_column, "text", comment="a text")
    table.change(set_properties, {"more": "1"})
    table.change(unset_properties, ["own.key"])
    table.change(alter_column, "text", first=True)
    table.change(
        add_columns, StructType((StructField("l", ArrayType(BOOLEAN), metadata={"comment": "new"}),))
    )


@case(deltalake="VacuumProtocolCheck")
def upgraded_protocol(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 2))
    table.change(upgrade_table_protocol, 1, 4)
    table.append(rows(3, 3))
    table.change(add_feature_support, "vacuumProtocolCheck")
    table.append(rows(4, 4))
    table.change(upgrade_table_protocol, 3, 7)


@case(
    deltalake="VacuumProtocolCheck",
    steps=("DELETE FROM {t} WHERE id = 2", "VACUUM {t} RETAIN 0 HOURS", "INSERT INTO {t} SELECT * FROM {t}"),
)
def vacuum_protocol_check(table: Written) -> None:
    table.create(PLAIN, properties={"delta.feature.vacuumProtocolCheck": "supported"})
    table.append(rows(1, 3))
    table.overwrite(rows(1, 2))


@case(deltalake_writes="checkpointProtection")
def checkpoint_protection(table: Written) -> None:
    table.create(PLAIN, properties={"delta.enableDeletionVectors": "true"})
    table.append(rows(1, 3))
    table.change(drop_feature_support, "deletionVectors")
    table.append(rows(4, 4))


@case()
def dropped_writer_features(table: Written) -> None:
    table.create(PLAIN, properties={"delta.enableInCommitTimestamps": "true"})
    table.change(add_constraint, "c", "id > 0", trusted)
    table.append(rows(1, 3))
    table.change(drop_constraint, "c")
    table.change(drop_feature_support, "checkConstraints")
    table.change(drop_feature_support, "inCommitTimestamp")
    table.append(rows(4, 4))


@case(steps=ALL_STEPS, checkpointed=True, deltalake="VariantShredding")
def all_features(table: Written) -> None:
    features = (
        "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
        "identityColumns", "deletionVectors", "rowTracking", "timestampNtz", "domainMetadata", "v2Checkpoint",
        "vacuumProtocolCheck", "inCommitTimestamp", "typeWidening", "variantType", "allowColumnDefaults",
        "checkpointProtection", "materializePartitionColumns", "variantShredding",
    )  # fmt: skip
    table.create(PLAIN, properties={f"delta.feature.{name}": "supported" for name in features})
    table.append(rows(1, 3))
