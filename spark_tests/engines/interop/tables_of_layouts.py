"""Tables by how their files lie: partitions, column mapping, names, codecs, sizes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
)
from delta_ds.kernel.transaction.alter.columns import add_columns, drop_columns, rename_column
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.engines.interop.written import ALL_STEPS, Row, Written, case, struct

UTC = dt.timezone.utc
BY_NAME = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}
PLAIN = struct(id=LONG, text=STRING)


def rows(first: int, last: int, **rest: Any) -> list[Row]:
    return [{"id": i, "text": f"row {i}", **rest} for i in range(first, last + 1)]


PARTITIONS = {
    "boolean": BOOLEAN, "byte": BYTE, "short": SHORT, "integer": INTEGER, "long": LONG, "float": FLOAT,
    "double": DOUBLE, "string": STRING, "date": DATE, "timestamp": TIMESTAMP,
    "decimal": DecimalType(20, 5),
}  # fmt: skip
PARTITION_VALUES: dict[str, list[Any]] = {
    "boolean": [True, False], "byte": [-128, 127], "short": [-32768, 32767], "integer": [-(2**31), 0],
    "long": [2**63 - 1, -(2**63)], "float": [1.5, float("nan")], "double": [-0.0, float("-inf")],
    "string": ["a b/c=d%e:f", "ü\"'\\#?&+*|<>[]{}^~\t\n\x7f"],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "timestamp": [
        dt.datetime(1900, 1, 1, 0, 0, 0, 1, UTC), dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
    ],
    "decimal": [Decimal("123456789012345.00001"), Decimal("0.00000")],
}  # fmt: skip


@case(steps=ALL_STEPS, checkpointed=True, filters={
    "p_string = 'a b/c=d%e:f'": 1, "p_date < DATE'1000-01-01'": 1, "p_integer = 0": 1, "p_boolean": 1,
    "p_timestamp = TIMESTAMP'2024-03-31 01:30:00Z'": 1, "p_decimal = 0": 1, "p_long IS NULL": 1,
    "isnan(p_float)": 1, "p_byte > 0 AND p_short > 0": 1,
})  # fmt: skip
def partitions_of_every_type(table: Written) -> None:
    names = [f"p_{name}" for name in PARTITIONS]
    table.create(struct(id=LONG, **dict(zip(names, PARTITIONS.values(), strict=True))), names)
    for i in (0, 1):
        values = [PARTITION_VALUES[name][i] for name in PARTITIONS]
        table.append([{"id": i + 1, **dict(zip(names, values, strict=True))}])
    table.append([{"id": 3, **dict.fromkeys(names)}])


@case(deltalake_miswrites="it encodes bytes in a way of its own")
def partitions_of_bytes(table: Written) -> None:
    table.create(struct(id=LONG, p=BINARY), ["p"])
    given: list[Row] = [
        {"id": i, "p": data} for i, data in enumerate([b"bytes", b"\x01\x02", "\u00fc".encode(), None], 1)
    ]
    table.append(given)


AWKWARD = [
    "", " ", "plain", "a=b", "a/b", "a%2Fb", "%", "a:b", "ü 漢 🎉", "'", '"', "\\", "#?&+", "\x01\x1f", "\n",
    "__HIVE_DEFAULT_PARTITION__", "null", ".", "..", "x" * 200, "a,b;c", "{}[]^~|<>*", "%20", "a b ", "\u00a0",
]  # fmt: skip


@case(
    steps=ALL_STEPS,
    checkpointed=True,
    filters={"p = 'a%2Fb'": 1, "p = 'plain'": 1, "p IS NULL": 1, "p = ' '": 1},
)
def partitions_of_awkward_texts(table: Written) -> None:
    # The empty text is null as a partition value, and so is the name of the folder for nulls.
    table.create(struct(p=STRING, id=LONG), ["p"])
    given: list[Row] = [{"id": i, "p": text} for i, text in enumerate([*AWKWARD, None], 1)]
    nulls = ("", "__HIVE_DEFAULT_PARTITION__")
    table.append(given, becomes=[{**row, "p": None if row["p"] in nulls else row["p"]} for row in given])


@case(filters={"p = 2": 1, "q = 'x'": 1})
def dynamic_overwrite_of_partitions(table: Written) -> None:
    table.create(struct(id=LONG, p=INTEGER, q=STRING), ["p", "q"])
    table.append([{"id": i, "p": p, "q": q} for i, (p, q) in enumerate([(1, "x"), (2, "y"), (None, "x")], 1)])
    new = [{"id": 7, "p": 2, "q": "y"}, {"id": 8, "p": None, "q": "x"}, {"id": 9, "p": 3, "q": None}]
    table.overwrite(
        new,
        keeps=lambda row: (row["p"], row["q"]) not in [(2, "y"), (None, "x")],
        partitionOverwriteMode="dynamic",
    )
    table.overwrite([{"id": 10, "p": 1, "q": "z"}], keeps=lambda row: row["p"] != 1, replaceWhere="p = 1")


def _mapped(table: Written, properties: dict[str, str]) -> None:
    inner = struct(**{"a b": INTEGER, "c,d": ArrayType(struct(**{"e;f": STRING}))})
    schema = struct(
        id=LONG, **{"with space": STRING, "dot.ted": inner, "map": MapType(STRING, inner)}, p=INTEGER
    )
    table.create(schema, ["p"], properties)
    value = {"a b": 1, "c,d": [{"e;f": "x"}, None]}
    row = {"id": 1, "with space": "w", "dot.ted": value, "map": [("k", value)], "p": 5}
    table.append([row, {**row, "id": 2, "p": None}])
    table.change(rename_column, "p", "part=ition", row=lambda r: {**r, "part=ition": r.pop("p")})
    table.change(rename_column, "`with space`", "text", row=lambda r: {**r, "text": r.pop("with space")})
    table.append([{"id": 3, "part=ition": 6, "text": "new name", "dot.ted": None, "map": None}])
    table.change(drop_columns, ["text"], row=lambda r: {k: v for k, v in r.items() if k != "text"})
    table.change(
        add_columns, struct(text=STRING, extra=DOUBLE), row=lambda r: {**r, "text": None, "extra": None}
    )
    table.append([{"id": 4, "part=ition": 5, "text": "again", "dot.ted": value, "map": [], "extra": 1.5}])

    def renamed(row: Row) -> Row:
        inner = row["dot.ted"]
        return {**row, "dot.ted": inner and {"renamed": inner["a b"], "c,d": inner["c,d"]}}

    table.change(rename_column, "`dot.ted`.`a b`", "renamed", row=renamed)


# Files from before a column was added have no statistics of it.
MAPPED_FILTERS = {"text = 'again'": 4, "`part=ition` = 6": 1, "`dot.ted`.renamed = 2": 0}


@case(steps=ALL_STEPS, checkpointed=True, filters=MAPPED_FILTERS)
def column_mapping_by_name(table: Written) -> None:
    _mapped(table, BY_NAME)


@case(steps=ALL_STEPS, checkpointed=True, filters=MAPPED_FILTERS)
def column_mapping_by_id(table: Written) -> None:
    _mapped(table, BY_ID)


@case(filters={"number = 3": 2})
def column_mapping_of_an_existing_table(table: Written) -> None:
    table.create(struct(id=LONG, text=STRING, s=struct(a=INTEGER, b=INTEGER)))
    table.append(rows(1, 2, s={"a": 1, "b": 2}))
    table.change(set_properties, {**BY_NAME, "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"})
    table.change(drop_columns, ["s.b"], row=lambda r: {**r, "s": {"a": r["s"]["a"]}})
    table.change(rename_column, "text", "Words", row=lambda r: {**r, "Words": r.pop("text")})
    table.append([{"id": 3, "Words": "x", "s": {"a": 3}, "number": 3}],
                 struct(id=LONG, Words=STRING, s=struct(a=INTEGER), number=LONG), mergeSchema=True)  # fmt: skip
    table.rows = [{"number": None, **r} for r in table.rows]


@case(filters={"`ÜBER` = 1": 1, "`select` = 'x'": 1})
def names_of_columns(table: Written) -> None:
    schema = struct(**{"Id": LONG, "ÜBER": INTEGER, "select": STRING, "back`tick": STRING, "a.b": INTEGER})
    table.create(schema, ["ÜBER"])
    for i in (1, 2):
        table.append([{"Id": i, "ÜBER": i, "select": "xy"[i - 1], "back`tick": "t", "a.b": i}])


@case()
def evolving_schema(table: Written) -> None:
    table.create(struct(id=LONG, s=struct(a=INTEGER)))
    table.append([{"id": 1, "s": {"a": 1}}])
    more = struct(ID=LONG, s=struct(b=STRING, a=INTEGER), l=ArrayType(struct(x=LONG)))
    table.append([{"ID": 2, "s": {"b": "x", "a": 2}, "l": [{"x": 1}]}], more,
                 becomes=[{"id": 2, "s": {"a": 2, "b": "x"}, "l": [{"x": 1}]}], mergeSchema=True)  # fmt: skip
    table.change(add_columns, struct(first=STRING), first=True)
    table.change(add_columns, struct(y=INTEGER), parent="l.element",
                 row=lambda r: {**r, "l": r.get("l") and [{**e, "y": None} for e in r["l"]]})  # fmt: skip
    table.append([{"first": "f", "id": 3, "s": None, "l": [{"x": 1, "y": 2}]}])


@case(filters={"q = 2": 1}, steps=("INSERT INTO {t} VALUES ('c', 2)", "DELETE FROM {t} WHERE id = 'b'"))
def overwritten_schema(table: Written) -> None:
    table.create(PLAIN, ["text"])
    table.append(rows(1, 2))
    table.overwrite(
        [{"id": "a", "q": 1}], struct(id=STRING, q=INTEGER), overwriteSchema=True, partitionBy="q"
    )
    table.overwrite([{"id": "b", "q": 2}])


@case()
def replaced_table(table: Written) -> None:
    table.create(PLAIN, properties={"delta.appendOnly": "false", "own": "one"}, description="before")
    table.append(rows(1, 2))
    table.create(struct(id=INTEGER, p=STRING), ["p"], mode="replace", name="after")
    table.append([{"id": 1, "p": "x"}])


CODECS = ("zstd", "snappy", "gzip", "lz4", "lz4_raw", "none", "uncompressed")


@case()
def codecs(table: Written) -> None:
    table.create(PLAIN, properties={"delta.parquet.compression.codec": "snappy"})
    for i, codec in enumerate(CODECS):
        table.append(rows(100 * i, 100 * i + 99), compression=codec)
    table.append(rows(1000, 1001))


@case()
def codec_lz4_of_the_table(table: Written) -> None:
    table.create(PLAIN, properties={"delta.parquet.compression.codec": "lz4"})
    table.append(rows(1, 1000))


@case(filters={"id = 5": 1, "id >= 8": 2})
def max_records_per_file(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 10), maxRecordsPerFile=3)


@case(filters={"id = 5": 1, "p = 1": 4})
def max_records_per_file_in_partitions(table: Written) -> None:
    table.create(struct(id=LONG, text=STRING, p=INTEGER), ["p"])
    table.append(
        [{**row, "p": row["id"] % 2} for row in rows(1, 15)], maxRecordsPerFile=2, optimizeWrite=False
    )


@case(steps=ALL_STEPS, checkpointed=True, filters={"p = 1": 1})
def random_prefixes(table: Written) -> None:
    properties = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3"}
    table.create(struct(id=LONG, text=STRING, p=INTEGER), ["p"], properties)
    table.append([{**row, "p": row["id"] % 2} for row in rows(1, 4)])


@case(
    steps=ALL_STEPS, checkpointed=True, deltalake_writes="MaterializePartitionColumns", filters={"p = 1": 1}
)
def materialized_partition_columns(table: Written) -> None:
    schema = struct(id=LONG, p=INTEGER, text=STRING, q=TIMESTAMP)
    table.create(schema, ["p", "q"], {"delta.feature.materializePartitionColumns": "supported"})
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 10, UTC)
    table.append([{**row, "p": row["id"] % 2, "q": moment} for row in rows(1, 4)])
    table.append([{**row, "p": None, "q": None} for row in rows(5, 5)])


@case(filters={"p = 1": 1})
def partition_columns_in_files(table: Written) -> None:
    schema = struct(p=INTEGER, id=LONG, text=STRING)
    table.create(schema, ["p"], {"delta.writePartitionColumnsToParquet": "true", **BY_NAME})
    table.append([{**row, "p": row["id"] % 2} for row in rows(1, 4)])


@case()
def newer_data_pages(table: Written) -> None:
    table.create(
        struct(id=LONG, text=STRING, l=ArrayType(INTEGER)),
        properties={"delta.parquet.format.version": "2.12.0"},
    )
    table.append([{**row, "l": [1, None, row["id"]]} for row in rows(1, 50)])


@case(filters={"id = 70000": 1})
def several_row_groups(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 80_000))


@case()
def rearranged(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    table.overwrite(rows(1, 4), dataChange=False)


@case(steps=("INSERT INTO {t} VALUES (1, 'x'), (2, NULL)", "OPTIMIZE {t}"))
def no_rows(table: Written) -> None:
    table.create(PLAIN, ["text"])
    table.append([], PLAIN)
    table.overwrite([], PLAIN)


@case(steps=("INSERT INTO {t} VALUES (1, 'x'), (2, NULL)", "OPTIMIZE {t}"))
def overwritten_by_nothing(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 3))
    table.overwrite([], PLAIN)


@case()
def created_by_a_write(table: Written) -> None:
    table.append(
        rows(1, 3),
        PLAIN,
        partitionBy="text",
        **{"delta.appendOnly": "false", "delta.logRetentionDuration": "interval 60 days"},
    )
    table.append(rows(4, 4))
