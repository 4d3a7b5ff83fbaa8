"""Complete and check the rows of a write by Spark expressions.

The twin of the kernel's `RowPipeline` for writes that Spark's own Parquet writer does: the same plan, as a projection.
A row that breaks a check makes the query fail with an error that `delta_error` turns into the one that the Arrow path
raises. The order is that of the Arrow path too: values that do not fit, then the checks as they are planned. Of several
such rows Spark tells the one that it comes to first; the Arrow path converts whole batches before it checks them.

Rows as Spark's Parquet writer needs them: physical names, field ids, partition values as text.

The twin of the kernel's `file_columns` for files that Spark writes.
Source: PROTOCOL.md, "Column Mapping", "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from delta_ds.exceptions import UnsupportedFeatureError
from delta_ds.kernel.files.rows.casts import match_names
from delta_ds.kernel.files.rows.generated import Default, Generated
from delta_ds.kernel.files.rows.plan import RowPlan, is_foreign
from delta_ds.kernel.format.expressions.tree import columns as columns_in
from delta_ds.kernel.format.schema.column_mapping import every_field, nested_keys, physical_name
from delta_ds.kernel.format.schema.field_metadata import COLLATIONS, FIELD_ID
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    TIMESTAMP,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    holds,
    is_nested,
    without_metadata,
)
from delta_ds.kernel.format.values.partition_values import NULL_DIRECTORY
from delta_ds.records import replace
from delta_ds.spark.base.schema import from_spark, quoted
from delta_ds.spark.engines.classic.columns import spark_schema
from delta_ds.spark.engines.classic.jvm import GeneratesNumbers, Jvm, NotNative
from delta_ds.spark.engines.classic.projection import (
    Caster,
    CastTo,
    ColumnAt,
    Guarded,
    Projected,
    may_overflow,
    overflow,
    project,
    type_json,
)
from delta_ds.spark.engines.classic.row_conditions import Rule, rules
from delta_ds.spark.engines.classic.sql_clauses import Analyst, columns_of
from delta_ds.spark.errors.row_errors import error_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.files.write.write_spec import WriteSpec
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.spark.base.kinds.java_object import JavaObject


__all__ = ["columns_of", "stored_rows"]


def stored_rows(
    df: DataFrame, plan: WritePlan, places: Sequence[str] = (), unchecked: str | None = None
) -> DataFrame:
    """The rows of a write as the table stores them.

    Parameters
    ----------
    df
        The rows that the write was planned for; columns are found by name, ignoring case.
    plan
        From `plan_write`, best with `columns_of(spark)`: expressions that only Spark understands are then planned too.
    places
        Columns that are no columns of the table, and are passed on as they are.
    unchecked
        SQL over these: which rows need not meet any check, and get no generated values; None: no rows.

    Returns
    -------
    DataFrame
        Lazy; exactly the table's columns in the table's order, by their logical names and types, all nullable and
        without metadata, and then the `places`. Every row of it meets the table's checks, or the query fails: see
        `delta_error`. The checks hang on the first of the places; without places all columns have to be written,
        since they hang on one of these.

    Raises
    ------
    NotNative
        Spark Connect, identity columns to generate, or types that Spark does not store this way.
    SchemaError
        The rows have columns that the table does not have.
    PredicateError, UnsupportedFeatureError
        An expression of the table does not fit it, or cannot be evaluated row by row.
    """
    source = from_spark(df.schema)
    further = tuple(field for field in source if field.name in places)
    rows = replace(plan.rows, table=StructType((*plan.rows.table, *further)))
    if rows.identities:
        identities = ", ".join(i.column for i in rows.identities)
        raise GeneratesNumbers(
            f"the values of identity columns are given out by the Arrow writer: {identities}"
        )
    if any(f.type == VOID for f in rows.table):
        raise NotNative("Spark does not write columns of type void")
    analyst = Analyst.of(df.sparkSession, rows.timezone, rows.table)
    with analyst.at_work():
        prefix = _unused_prefix(rows.table)
        source_frame = analyst.frame(analyst.jvm.logical_plan(df))
        # By position: no name, alias or duplicate of the user's gets in the way.
        names = [f"{prefix}{i}" for i in range(len(source))]
        source_frame = analyst.project(source_frame, [ColumnAt(at, name) for at, name in enumerate(names)])
        overflows, frame = _convert_columns(source_frame, names, source, rows, analyst)
        for generated in _independent(rows.generated):
            frame = _with_generated(frame, generated, rows.table, analyst, unchecked)
        checks = [*overflows, *rules(rows, frame, analyst)]
        if unchecked is not None:
            checks.insert(0, Rule(unchecked, quoted(places[0])))
        carrier = places[0] if places else _carrier(plan)
        frame = _check_rows(frame, checks, rows.table, carrier, analyst)
        resolved = analyst.jvm.logical_plan(frame)
    return analyst.jvm.data_frame(resolved)


def _unused_prefix(table: StructType) -> str:
    """What no column of the table starts with."""
    prefix = "given "
    while any(name.lower().startswith(prefix) for name in table.names):
        prefix = f"_{prefix}"
    return prefix


# --- completing


def _convert_columns(
    frame: DataFrame, names: Sequence[str], source: StructType, rows: RowPlan, analyst: Analyst
) -> tuple[list[Rule], DataFrame]:
    """The columns that the rows bring, in the types of the table, and those that are null or have a default.

    Returns
    -------
    list of Rule
        Nothing that a row breaks, but Spark converts all that may not fit before it goes on to the next rule.
    DataFrame
        Under the table's names; generated columns are not in it yet, incoming ones that may not fit still are.
    """
    from pyspark.sql import functions as F

    caster = Caster(analyst.jvm)
    defaults = {d.column: d for d in rows.defaults}
    generated = {g.column for g in rows.generated}
    overflows: list[Rule] = []
    columns: list[Projected] = []
    constants = _constants(rows.defaults, analyst)
    nulls: dict[str, Column] = {}
    for field, at in zip(rows.table, match_names(source.names, rows.table), strict=True):
        if field.name in generated:
            continue
        if at is not None:
            source_field = source.fields[at]
            if _is_stored_as_it_is(source_field, field):
                columns.append(ColumnAt(at, field.name))
                continue
            value = F.col(quoted(names[at]))
            if COLLATIONS in source_field.metadata:
                value = caster.cast(value, source_field.type)
            stored = caster.convert(value, source_field.type, field.type, field.name)
            if may_overflow(source_field.type, field.type):
                lost = F.col(quoted(names[at])).isNotNull() & F.col(quoted(field.name)).isNull()
                overflows.append(
                    Rule(lost, error_column(overflow(source_field.type, field.type, field.name)))
                )
                columns.append(F.col(quoted(names[at])))
        elif field.name in defaults:
            columns.append(CastTo(constants[field.name], type_json(defaults[field.name].type), field.name))
            continue
        else:
            if (kind := str(field.type)) not in nulls:
                nulls[kind] = caster.null(field.type)
            stored = nulls[kind]
        columns.append(stored.alias(field.name, metadata={}))
    return overflows, analyst.project(frame, columns)


def _is_stored_as_it_is(source_field: StructField, field: StructField) -> bool:
    return (
        source_field.type == field.type
        and without_metadata(source_field.type) == source_field.type
        and COLLATIONS not in source_field.metadata
    )


def _constants(defaults: Sequence[Default], analyst: Analyst) -> dict[str, JavaObject]:
    """The expressions of defaults; what cannot be computed is told now, as the Arrow path does."""
    for default in defaults:
        if not is_foreign(default.clause):
            with suppress(UnsupportedFeatureError):  # Spark may be able to all the same
                default.value(analyst.timezone)
    values = analyst.resolve_all(analyst.no_columns(), [default.clause for default in defaults])
    return {default.column: value for default, value in zip(defaults, values, strict=True)}


def _independent(generated: Sequence[Generated]) -> Iterator[list[Generated]]:
    """Generated columns in their order, as many at a time as do not read one another."""
    group: list[Generated] = []
    for column in generated:
        read = {path.path[0].lower() for path in columns_in(column.clause.tree)}
        if any(other.column.lower() in read for other in group):
            yield group
            group = []
        group.append(column)
    if group:
        yield group


def _with_generated(
    frame: DataFrame,
    generated: Sequence[Generated],
    table: StructType,
    analyst: Analyst,
    unchecked: str | None,
) -> DataFrame:
    from pyspark.sql import functions as F

    values = analyst.resolve_all(frame, [column.clause for column in generated])
    kinds = {field.name: field.type for field in table}
    columns: list[Projected] = [ColumnAt(at) for at in range(len(frame.columns))]
    for column, value in zip(generated, values, strict=True):
        kind = kinds[column.column]
        if unchecked is None:
            columns.append(CastTo(value, type_json(kind), column.column))
        else:
            made = F.when(~F.expr(unchecked), analyst.jvm.column(value))
            columns.append(Caster(analyst.jvm).cast(made, kind).alias(column.column))
    return analyst.project(frame, columns)


# --- checking


def _check_rows(
    frame: DataFrame, checks: Sequence[Rule], table: StructType, carrier: str, analyst: Analyst
) -> DataFrame:
    """The table's columns in order, one of them, the carrier, only to be had from rows that meet all checks."""
    positions = {name: at for at, name in enumerate(frame.schema.names)}
    columns: list[Projected] = []
    for field in table:
        if checks and field.name == carrier:
            columns.append(Guarded(positions[field.name], [(check.broken, check.error) for check in checks]))
        else:
            columns.append(ColumnAt(positions[field.name], field.name))
    return analyst.project(frame, columns)


def _carrier(plan: WritePlan) -> str:
    """The column that the checks hang on: one that is cheap to pass on."""
    table = plan.rows.table
    partitions = {name.lower() for name in plan.state.partition_columns}
    stored = [f for f in table if f.name.lower() not in partitions]
    flat = [f for f in stored if not is_nested(f.type)]
    return (flat or stored or list(table.fields))[0].name


_PARQUET_ID = "parquet.field.id"
# No name of a column begins with it: Spark refuses the character in names of files' columns.
COPY = "\x01"


def check_writable(plan: WriteSpec) -> None:
    """Check that Spark's writer can make the files that a plan asks for.

    Raises
    ------
    NotNative
        What it cannot do.
    """
    if plan.data_pages_v2:
        raise NotNative("Spark writes data pages of Parquet 1 only")
    if plan.target_file_size:
        raise NotNative("delta.targetFileSize is set, and Spark does not close a file by its size")
    if plan.codec in ("brotli", "lz4"):
        raise NotNative(f"Spark has no {plan.codec} as other readers understand it")
    partitions = set(plan.partition_columns)
    for field in plan.schema:
        fields = (field, *every_field(field.type))
        nested = [f.type for f in fields[1:]]
        if holds(field.type, VARIANT):
            raise NotNative(f"column {field.name} holds variants, which Spark may shred")
        if plan.writes_nested_ids and any(next(nested_keys(f.type, f.name), None) for f in fields):
            raise NotNative(
                f"column {field.name} holds arrays or maps, whose inner field ids Spark does not write"
            )
        if VOID in nested:
            raise NotNative(f"column {field.name} holds void")
        if field.name in partitions and field.type == BINARY:
            raise NotNative(
                f"partition column {field.name} is binary, which the name of a folder cannot hold"
            )


def stored_columns(rows: DataFrame, plan: WriteSpec) -> tuple[DataFrame, list[str]]:
    """The columns to write, and the names of the last ones, by which files are partitioned.

    Spark takes the columns by which it partitions out of the files. Those that files hold all the same are there twice,
    before the last ones under names that begin with `COPY`, which `TableWrite` takes off in the files.

    Parameters
    ----------
    rows
        Exactly the table's columns, by their logical names.
    plan
        Of the files; `check_writable` has let it pass.
    """
    partitions = list(plan.partition_columns)
    fields = {f.name: f for f in plan.schema}
    positions = {name: at for at, name in enumerate(rows.schema.names)}
    data = [f for f in plan.schema if f.name not in partitions and f.type != VOID]
    names = [physical_name(fields[name], plan.mapping_mode) for name in partitions]
    columns = [_stored_column(rows, positions[f.name], f, plan.mapping_mode) for f in data]
    if plan.writes_partition_columns:
        copied = [fields[name] for name in partitions if fields[name].type != VOID]
        columns += [_copy(rows, positions[f.name], f, plan.mapping_mode) for f in copied]
    columns += [
        _text(rows[quoted(name)], fields[name].type).alias(physical, metadata={})
        for name, physical in zip(partitions, names, strict=True)
    ]
    return project(Jvm.of(rows.sparkSession), rows, columns), names


def _stored_column(rows: DataFrame, position: int, field: StructField, mode: str) -> Projected:
    if mode == "none":
        return ColumnAt(position, field.name)
    if not any(every_field(field.type)):
        return ColumnAt(position, physical_name(field, mode), _id(field))
    wanted = spark_schema([replace(field, type=_physical(field.type, mode))])[0].dataType
    cast = rows[quoted(field.name)].cast(wanted)
    return cast.alias(physical_name(field, mode), metadata=_id(field))


def _copy(rows: DataFrame, position: int, field: StructField, mode: str) -> Projected:
    """A partition column as data files hold it: its values are those that the log says."""
    name = COPY + physical_name(field, mode)
    if field.type != STRING:
        return ColumnAt(position, name, _id(field))
    return _text(rows[quoted(field.name)], STRING).alias(name, metadata=_id(field))


def _id(field: StructField) -> dict[str, int]:
    return {_PARQUET_ID: field.metadata[FIELD_ID]} if FIELD_ID in field.metadata else {}


def _physical(data_type: DataType, mode: str) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(
            tuple(
                StructField(physical_name(f, mode), _physical(f.type, mode), True, _id(f)) for f in data_type
            )
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_physical(data_type.element, mode), True)
    if isinstance(data_type, MapType):
        return MapType(_physical(data_type.key, mode), _physical(data_type.value, mode), True)
    return data_type


def _text(column: Column, data_type: DataType) -> Column:
    """A partition value as text that means the same in every session; timestamps are in UTC."""
    from pyspark.sql import functions as F

    if data_type == STRING:
        # Both are null in the log; Spark would make them folders of the same name as that of null.
        return F.when(~column.isin("", NULL_DIRECTORY), column)
    if data_type == TIMESTAMP:
        since = F.make_timestamp_ntz(*(F.lit(part) for part in (1970, 1, 1, 0, 0, 0)))
        seconds = (F.unix_micros(column).cast("decimal(20,0)") / F.lit(1_000_000)).cast("decimal(18,6)")
        timestamp = since + F.make_dt_interval(secs=seconds)
        return F.concat(timestamp.cast("string"), F.lit("Z"))
    return column.cast("string")
