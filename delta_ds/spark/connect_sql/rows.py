"""DELETE, UPDATE and MERGE of a client: their clauses to the commands, which work on Spark Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.connect_sql.insert import insert
from delta_ds.spark.connect_sql.query import Call, with_ctes
from delta_ds.spark.engines.frames import nothing
from delta_ds.spark.schema import dotted
from delta_ds.spark.sql_grammar.dml_statements import Delete, Insert, Merge, MergeClause, RowStatement, Update
from delta_ds.spark.sql_grammar.statements import SqlText
from delta_ds.spark.table import DeltaTable

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
        insert(call, statement)
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
    source = call.query(with_ctes(statement.ctes, f"SELECT * FROM {statement.source}"))
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
