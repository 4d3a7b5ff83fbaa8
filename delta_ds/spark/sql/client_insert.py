"""INSERT of a client: its rows under the names and types of the table's columns, then a write.

What Spark's analyser does where the server has a catalog for the table: columns by position, by name or as listed,
constants of PARTITION, the word DEFAULT, values for columns that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, UserDefinedType

from delta_ds.conditions.columns import COLUMN_TWICE_IN_INSERT
from delta_ds.conditions.schema import UNRESOLVED_COLUMN_OF_INSERT
from delta_ds.conditions.session import (
    INSERT_IF_PARTITION_NOT_EXISTS,
    INSERT_INTO_NO_PARTITION_COLUMN,
    INSERT_LIST_ARITY_MISMATCH,
    INSERT_PARTITION_COLUMN_IN_LIST,
)
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT
from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE
from delta_ds.spark.base.kinds.session_facts import facts_of
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.sql_grammar.dml_grammar import insert_options
from delta_ds.spark.base.sql_grammar.literals import with_defaults
from delta_ds.spark.base.table_names import path_of_parts, without_path
from delta_ds.spark.session.writes.request import (
    INSERT,
    INSERT_BY_NAME,
    INSERT_LISTED,
    Table,
    Way,
    WriteRequest,
    existing_table,
)
from delta_ds.spark.session.writes.write import write
from delta_ds.spark.sql.client_references import Call, with_ctes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from delta_ds.spark.base.sql_grammar.statements import Insert

_NULL = "NULL"


def insert(call: Call, statement: Insert) -> None:
    """Run an INSERT into a table by path.

    Raises
    ------
    SchemaError
        Columns that the table does not have, or that are named twice; fewer values than columns.
    DeltaError
        As every write.
    """
    path = path_of_parts(statement.target)
    assert path is not None, "other targets are Spark's"
    if statement.if_not_exists:
        raise INSERT_IF_PARTITION_NOT_EXISTS(table=path)
    options = {**without_path(insert_options(statement)), "path": path}
    if statement.schema_evolution:
        options["mergeSchema"] = "true"
    table = existing_table(call.spark, {"path": path}, "INSERT")
    write(_Insert(call, statement, table).request(options))


class _Insert:
    """An INSERT and the table it is for."""

    def __init__(self, call: Call, statement: Insert, table: Table) -> None:
        self._call = call
        self._statement = statement
        self._table = table
        self._fields = {field.name.lower(): field for field in table.schema.fields}
        self._fixed = self._partition_values()

    def request(self, options: dict[str, str]) -> WriteRequest:
        """The write that it asks for."""
        statement = self._statement
        mode = OVERWRITE if statement.overwrite else APPEND
        if statement.replaces_matches:
            way = INSERT_BY_NAME if statement.by_name else INSERT
            return WriteRequest(self._query(str(statement.query)), way, OVERWRITE, options)
        if statement.replace_where is not None:
            rows = self._query(str(statement.query))
            return WriteRequest(rows, INSERT, OVERWRITE, options, replaced=str(statement.replace_where))
        if not (statement.partition or statement.columns or statement.by_name):
            return WriteRequest(self._rows(self._table.schema.fields), INSERT, mode, options)
        rows, way = self._named_rows()
        replaced = None
        if statement.overwrite and self._fixed and not facts_of(self._call.spark).dynamic_overwrite:
            replaced = " AND ".join(self._is_partition(name) for name in self._fixed)
        return WriteRequest(self._with_constants(rows), way, mode, options, replaced=replaced)

    # --- PARTITION

    def _partition_values(self) -> dict[str, str]:
        """The constants of PARTITION, by the names of the columns in the table's case."""
        partitions = {name.lower(): name for name in self._table.partition_columns}
        found = {}
        for (column,), value in self._statement.partition:
            if column.lower() not in partitions:
                raise INSERT_INTO_NO_PARTITION_COLUMN(
                    table=self._table.address, columnName=column, partition_columns=list(partitions.values())
                )
            if value is not None:
                found[partitions[column.lower()]] = str(value)
        return found

    def _value(self, name: str) -> str:
        kind = self._fields[name.lower()].dataType.simpleString()
        return f"CAST({self._fixed[name]} AS {kind})"

    def _is_partition(self, name: str) -> str:
        """The condition that a row is of the partition that a constant names; null is a value like any other."""
        if self._fixed[name].upper() == _NULL:
            return f"{quoted(name)} IS NULL"
        return f"{quoted(name)} = {self._value(name)}"

    def _with_constants(self, rows: DataFrame) -> DataFrame:
        given = {name.lower() for name in rows.columns}
        for name in self._fixed:
            if name.lower() in given:
                raise INSERT_PARTITION_COLUMN_IN_LIST(table=self._table.address, staticName=name)
        return rows.select("*", *(F.expr(self._value(name)).alias(name) for name in self._fixed))

    # --- rows

    def _named_rows(self) -> tuple[DataFrame, Way]:
        """The rows under names of the table's columns, without those of constants, and how these were given."""
        if self._statement.by_name:
            return self._rows([]), INSERT_BY_NAME
        if self._statement.columns:
            names = [column[-1] for column in self._statement.columns]
            self._check_list(names)
        else:
            fixed = {name.lower() for name in self._fixed}
            names = [name for name in self._table.schema.names if name.lower() not in fixed]
        rows = self._rows([self._fields[name.lower()] for name in names])
        if len(rows.columns) != len(names):
            raise INSERT_LIST_ARITY_MISMATCH(
                table=self._table.address, columns=len(names), given=len(rows.columns), names=names
            )
        # By place too rows are stored as they are where all names are the table's, those in structs in any order.
        is_named = not self._statement.columns and rows.columns == names
        return rows.toDF(*names), INSERT_BY_NAME if is_named else INSERT_LISTED

    def _check_list(self, names: Sequence[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name.lower() not in self._fields:
                raise UNRESOLVED_COLUMN_OF_INSERT(
                    table=self._table.address, objectName=name, proposal=self._table.schema.names
                )
            if name.lower() in seen:
                raise COLUMN_TWICE_IN_INSERT(table=self._table.address, columnName=name)
            seen.add(name.lower())

    def _rows(self, columns: Sequence[StructField]) -> DataFrame:
        """What the query gives for some columns; DEFAULT in it stands for their defaults.

        As in Spark it does not where a source has a column of that name.
        """
        text = str(self._statement.query)

        def default(place: int) -> str | None:
            return _default(columns[place]) if place < len(columns) else None

        completed = with_defaults(text, default)
        try:
            rows = self._query(text)
            _ = rows.schema
        except PySparkException:
            if completed == text:
                raise
            return self._query(completed)
        return rows

    def _query(self, text: str) -> DataFrame:
        return self._call.query(with_ctes(self._statement.ctes, text))


def _default(column: StructField) -> str:
    """The SQL of a column's default, of its type."""
    text = column.metadata.get(CURRENT_DEFAULT, _NULL)
    # The type of a nested column has names in it, which are not quoted here; SQL has no name of a user-defined one.
    nested = isinstance(column.dataType, (StructType, ArrayType, MapType, UserDefinedType))
    return text if nested else f"CAST({text} AS {column.dataType.simpleString()})"
