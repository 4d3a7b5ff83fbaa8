"""Tables of the matrix that the catalogue of `interop` lacks: clones, manifests, previews, rewritten rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

from delta_ds import DeltaLog
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.convert_to_delta import convert_to_delta
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.maintain import SYMLINK_FORMAT_MANIFEST, generate
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.format.properties import PROPERTIES
from delta_ds.kernel.format.schema.types import DATE, INTEGER, LONG, STRING, DecimalType
from delta_ds.kernel.storage.coordination.sqlite import SQLiteCoordinator
from spark_tests.engines.interop.catalogue import CASES
from spark_tests.engines.interop.tables_of_features import PLAIN, is_kept, rows
from spark_tests.engines.interop.tables_of_logs import checkpointed
from spark_tests.engines.interop.tables_of_types import VARIANT_ROWS, VARIANTS
from spark_tests.engines.interop.written import Row, Written, struct

Build = Callable[[Written], None]
MORE: dict[str, Build] = {}


def more(build: Build) -> Build:
    assert build.__name__ not in CASES, build.__name__
    MORE[build.__name__] = build
    return build


def build_of(name: str) -> Build:
    """What writes a table, of the catalogue or of this module."""
    return MORE[name] if name in MORE else CASES[name].build


UNIFORM = "delta.universalFormat.enabledFormats"
VECTORS = {"delta.enableDeletionVectors": "true"}


@more
def deleted_rows(table: Written) -> None:
    table.create(PLAIN, properties=VECTORS)
    table.append(rows(1, 40))
    table.append(rows(41, 80))
    for gone in (3, 41):
        table.change(delete, f"id = {gone}")
        table.rows = [row for row in table.rows if row["id"] != gone]
    table.versions[table.log.snapshot().version] = table.rows


@more
def deleted_rows_in_a_checkpoint(table: Written) -> None:
    deleted_rows(table)
    checkpointed(table)


@more
def deleted_rows_of_partitions_and_mapped_columns(table: Written) -> None:
    properties = {**VECTORS, "delta.columnMapping.mode": "name"}
    table.create(struct(**{"id": LONG, "a b": STRING, "p": INTEGER}), ["p"], properties)
    table.append([{"id": i, "a b": f"row {i}", "p": i % 2} for i in range(1, 41)])
    table.change(delete, "id = 7")
    table.rows = [row for row in table.rows if row["id"] != 7]
    table.versions[table.log.snapshot().version] = table.rows


def _source(table: Written, build: Build) -> Written:
    source = Written(table.path.with_name(f"{table.path.name} source"))
    build(source)
    return source


def _cloned(table: Written, source: Written) -> None:
    table.rows = source.rows
    table.versions[table.log.snapshot().version] = source.rows


@more
def shallow_clone_by_absolute_paths(table: Written) -> None:
    source = _source(table, CASES["partitions_of_awkward_texts"].build)
    shallow_clone(source.log, table.log)
    _cloned(table, source)
    table.append([{"id": 100, "p": "of the clone"}])


@more
def shallow_clone_of_deleted_rows(table: Written) -> None:
    source = _source(table, deleted_rows)
    shallow_clone(source.log, table.log)
    _cloned(table, source)


@more
def deep_clone_of_deleted_rows(table: Written) -> None:
    source = _source(table, deleted_rows)
    deep_clone(source.log, table.log)
    _cloned(table, source)


@more
def converted_from_parquet(table: Written) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = [{"id": 1, "day": dt.date(2024, 1, 2), "x": Decimal("1.50")}, {"id": 2, "day": None, "x": None}]
    for p in ("a b", "c"):
        folder = table.path / f"p={p}"
        folder.mkdir(parents=True)
        kinds = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("x", pa.decimal128(5, 2))])
        pq.write_table(pa.Table.from_pylist(values, kinds), folder / "part-0.parquet")
    convert_to_delta(table.log, struct(p=STRING))
    table.rows = [{**row, "p": p} for p in ("a b", "c") for row in values]
    table.versions[table.log.snapshot().version] = table.rows


@more
def optimized(table: Written) -> None:
    table.create(PLAIN, properties={"delta.enableRowTracking": "true"})
    for i in range(1, 5):
        table.append(rows(i, i))
    table.change(optimize)


@more
def restored(table: Written) -> None:
    table.create(PLAIN)
    table.append(rows(1, 4))
    table.overwrite(rows(4, 9), keeps=is_kept(2), replaceWhere="id > 2")
    table.change(lambda log: restore(log, version=1))
    table.rows = rows(1, 4)
    table.versions[table.log.snapshot().version] = table.rows


@more
def symlink_manifest(table: Written) -> None:
    schema = struct(**{"id": LONG, "text": STRING, "a%b:c": STRING, "day": DATE, "x": DecimalType(10, 2)})
    table.create(schema, ["a%b:c", "day"])
    days = [dt.date(2024, 2, 29), None]
    made: list[Row] = []
    for i, p in enumerate(["plain", "a b", "a/b=c%d", "ü 漢", "#?&+:", None], 1):
        made.append({"id": i, "text": f"row {i}", "a%b:c": p, "day": days[i % 2], "x": Decimal(i)})
    table.append(made)
    table.overwrite(
        [{**made[0], "text": "new"}], keeps=lambda r: r["id"] != 1, replaceWhere="`a%b:c` = 'plain'"
    )
    generate(table.log, SYMLINK_FORMAT_MANIFEST)


@more
def type_widening_preview(table: Written) -> None:
    from delta_ds.kernel.transaction.alter.change_column import alter_column

    properties = {"delta.feature.typeWidening-preview": "supported", "delta.enableTypeWidening": "true"}
    table.create(struct(id=LONG, n=INTEGER), properties=properties)
    table.append([{"id": 1, "n": 7}])
    table.change(alter_column, "n", data_type=LONG)
    table.append([{"id": 2, "n": 2**40}])


def _variants(table: Written, feature: str) -> None:
    table.create(VARIANTS, properties={f"delta.feature.{feature}": "supported"})
    table.append(VARIANT_ROWS)


@more
def variant_preview(table: Written) -> None:
    _variants(table, "variantType-preview")


@more
def variant_shredding(table: Written) -> None:
    _variants(table, "variantShredding")


@more
def variant_shredding_preview(table: Written) -> None:
    _variants(table, "variantShredding-preview")


@more
def catalog_managed(table: Written) -> None:
    options = {
        "commitCoordinator": "sqlite", "coordinatorUrl": str(table.path.with_name("coordinator.db")),
        "catalogTable": "main.sales.orders",
    }  # fmt: skip
    SQLiteCoordinator(options).create("main.sales.orders", str(table.path))
    table.log = DeltaLog(table.path, options)
    table.create(PLAIN)
    table.append(rows(1, 3))
    table.append(rows(4, 5))


def _iceberg(table: Written, version: int) -> None:
    properties = {"delta.columnMapping.mode": "name", f"delta.enableIcebergCompatV{version}": "true"}
    if PROPERTIES[UNIFORM].acts_on != "refused":
        properties[UNIFORM] = "iceberg"
    if version == 3:
        properties["delta.enableRowTracking"] = "true"
    table.create(struct(id=LONG, text=STRING, p=INTEGER), ["p"], properties)
    table.append([*rows(1, 3, p=1), *rows(4, 6, p=2)])
    table.overwrite(rows(3, 3, p=1), keeps=lambda r: r["p"] != 1, replaceWhere="p = 1")


@more
def iceberg_compat_v1(table: Written) -> None:
    _iceberg(table, 1)


@more
def iceberg_compat_v2(table: Written) -> None:
    _iceberg(table, 2)


@more
def iceberg_compat_v3(table: Written) -> None:
    _iceberg(table, 3)
