"""DELETE, UPDATE, MERGE and INSERT of a client: their clauses to the commands, which work on Spark Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from delta_ds.conditions.session import INSERT_IF_PARTITION_NOT_EXISTS, INSERT_LIST_ARITY_MISMATCH
from delta_ds.records import replace
from delta_ds.spark.connect_sql.query import Call
from delta_ds.spark.frames import nothing
from delta_ds.spark.schema import dotted, quoted
from delta_ds.spark.session.positions import by_position
from delta_ds.spark.session.tables import existing_table
from delta_ds.spark.session.writing import APPEND, DYNAMIC_CONF, OVERWRITE, insert_into, save
from delta_ds.spark.sql_grammar.dml_statements import Delete, Insert, Merge, MergeClause, RowStatement, Update
from delta_ds.spark.sql_grammar.statements import SqlText
from delta_ds.spark.table import DeltaTable
from delta_ds.spark.table_names import path_of_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder
    from delta_ds.spark.sql_grammar.dml_statements import Assignments


def execute_rows(call: Call, statement: RowStatement) -> DataFrame:
    """Run a statement that changes rows of a table by path.

    Returns
    -------
    DataFrame
        The counts that delta-spark answers; of an INSERT nothing.
    """
    if isinstance(statement, Insert):
        _insert(call, statement)
        return nothing(call.spark)
    table = DeltaTable.forName(call.spark, dotted(statement.target))
    if statement.alias is not None:
        table = table.alias(statement.alias)
    if isinstance(statement, Delete):
        return table.delete(_text(statement.where))
    if isinstance(statement, Update):
        return table.update(_text(statement.where), _values(statement.assignments))
    return _merge(call, table, statement)


def _text(text: SqlText | None) -> str | None:
    return None if text is None else str(text)


def _values(assignments: Assignments) -> dict[str, str]:
    return {dotted(column): str(value) for column, value in assignments}


# --- MERGE


def _merge(call: Call, table: DeltaTable, statement: Merge) -> DataFrame:
    source = call.query(_with_ctes(statement.ctes, f"SELECT * FROM {statement.source}"))
    if statement.source_name is not None:
        source = source.alias(statement.source_name)
    builder = table.merge(source, str(statement.on))
    if statement.schema_evolution:
        builder = builder.withSchemaEvolution()
    for clause in statement.clauses:
        builder = _add_clause(builder, clause)
    return builder.execute()


def _add_clause(builder: DeltaMergeBuilder, clause: MergeClause) -> DeltaMergeBuilder:
    condition = _text(clause.condition)
    values = None if clause.assignments is None else _values(clause.assignments)
    if clause.when == "not_matched":
        if values is None:
            return builder.whenNotMatchedInsertAll(condition)
        return builder.whenNotMatchedInsert(condition, values)
    if clause.when == "not_matched_by_source":
        if clause.action == "delete":
            return builder.whenNotMatchedBySourceDelete(condition)
        return builder.whenNotMatchedBySourceUpdate(condition, values)
    if clause.action == "delete":
        return builder.whenMatchedDelete(condition)
    if values is None:
        return builder.whenMatchedUpdateAll(condition)
    return builder.whenMatchedUpdate(condition, values)


def _with_ctes(ctes: SqlText | None, query: str) -> str:
    return query if ctes is None else f"{ctes} {query}"


# --- INSERT


def _insert(call: Call, statement: Insert) -> None:
    path = path_of_parts(statement.target)
    assert path is not None, "other targets are Spark's"
    if statement.if_not_exists:
        raise INSERT_IF_PARTITION_NOT_EXISTS(table=path)
    rows = call.query(_with_ctes(statement.ctes, str(statement.query)))
    options = {"mergeSchema": "true"} if statement.schema_evolution else {}
    mode = OVERWRITE if statement.overwrite else APPEND
    if statement.replace_where is not None:
        insert_into(rows, path, OVERWRITE, {**options, "replaceWhere": str(statement.replace_where)})
    elif statement.partition:
        _insert_partition(call, rows, path, statement, options)
    elif statement.columns or statement.by_name:
        named = _named(rows, [column[0] for column in statement.columns], path)
        save(_stored(call, named, path, options), path, mode, options)
    else:
        insert_into(rows, path, mode, options)


def _named(rows: DataFrame, columns: list[str], path: str) -> DataFrame:
    """The rows under the names of a list of columns; without a list under their own."""
    if not columns:
        return rows
    if len(rows.columns) != len(columns):
        raise INSERT_LIST_ARITY_MISMATCH(
            table=path, columns=len(columns), given=len(rows.columns), names=columns
        )
    return rows.toDF(*columns)


def _stored(call: Call, rows: DataFrame, path: str, options: dict[str, str]) -> DataFrame:
    """The rows with the types of the table's columns of the same names, as by position."""
    table = existing_table(call.spark, {"path": path}, "INSERT")
    known = {field.name.lower(): field for field in table.schema.fields}
    fields = [known.get(field.name.lower(), field) for field in rows.schema.fields]
    return by_position(rows, replace(table, schema=StructType(fields)), options)


def _insert_partition(
    call: Call, rows: DataFrame, path: str, statement: Insert, options: dict[str, str]
) -> None:
    """`PARTITION (p = 1, q)`: rows without the columns that have a value there."""
    table = existing_table(call.spark, {"path": path}, "INSERT")
    fixed = {column[0].lower(): str(value) for column, value in statement.partition if value is not None}
    names = [name for name in table.schema.names if name.lower() not in fixed]
    if statement.columns:
        names = [column[0] for column in statement.columns]
    placed = _named(rows, names, path)
    for name, value in fixed.items():
        placed = placed.withColumn(name, F.expr(value))
    dynamic = str(call.spark.conf.get(DYNAMIC_CONF, "static")).lower() == "dynamic"
    if statement.overwrite and fixed and not dynamic:
        options = {**options, "replaceWhere": " AND ".join(f"{quoted(n)} = {v}" for n, v in fixed.items())}
    save(_stored(call, placed, path, options), path, OVERWRITE if statement.overwrite else APPEND, options)
