"""`column = expression` and `column = value`, planned: resolved against the table, and refused where they do not fit.

Source: delta-spark, `UpdateExpressionsSupport.generateUpdateExpressions`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from delta_ds.conditions.dml import (
    CANNOT_RESOLVE_EXPRESSION,
    CONFLICT_SET_COLUMN,
    UPDATE_SCHEMA_MISMATCH_EXPRESSION,
)
from delta_ds.conditions.schema import FAILED_TO_MERGE_FIELDS
from delta_ds.exceptions import DeltaError, InvalidOptionError, SchemaError
from delta_ds.kernel.commands.dml.constants import constant_array
from delta_ds.kernel.commands.dml.new_values import NewValue, NewValues
from delta_ds.kernel.commands.dml.target_paths import (
    NOTHING,
    check_identities,
    inside_structs,
    lacking,
    not_there,
)
from delta_ds.kernel.files.rows.casts import can_store
from delta_ds.kernel.files.rows.expressions import RowExpression, at_timestamp, read_row_expression
from delta_ds.kernel.files.rows.generated import read_default
from delta_ds.kernel.format.expressions.coercion import is_nested
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.schema.column_paths import Path, find, parse_path, show
from delta_ds.kernel.format.schema.types import (
    STRING,
    VARIANT,
    VOID,
    DataType,
    StructField,
    StructType,
    arrow_type,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.records import dataclass

_DEFAULT = "default"
_REMEDY = "Use an expression that this package evaluates, or let Spark do it: `DeltaTable`."


@dataclass(frozen=True, slots=True)
class Assignments:
    """Plans what columns of a table get.

    Attributes
    ----------
    state
        The table.
    operation
        For messages: `UPDATE`, `MERGE`.
    timezone
        The session time zone.
    now
        What `current_timestamp()` means, aware.
    inputs
        The columns that expressions may read; None: those of the table.
    """

    state: TableState
    operation: str
    timezone: str
    now: datetime.datetime
    inputs: StructType | None = None

    def plan(
        self,
        expressions: Mapping[str, str | Expression] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> NewValues:
        """What columns get.

        Parameters
        ----------
        expressions
            By column (`s.a` for a field of a struct) an expression in Spark SQL, or as a tree, not bound.
        constants
            By column a value of Python.

        Raises
        ------
        SchemaError
            A column is not there or is given twice, or a value does not fit.
        UnsupportedOperationError
            It is an identity column.
        UnsupportedFeatureError, PredicateError
            An expression cannot be read, bound or evaluated here; it is named.
        """
        found = [self._expression(name, text) for name, text in (expressions or {}).items()]
        found += [self._constant(name, value) for name, value in (constants or {}).items()]
        self._check_once([value.path for value in found])
        check_identities(self.state.schema, [value.path for value in found], self.state.table, insert=False)
        place = {field.name: n for n, field in enumerate(self.state.schema)}
        return NewValues(tuple(sorted(found, key=lambda value: place[value.path[0]])), self.timezone)

    def _target(self, name: str) -> tuple[Path, StructField]:
        schema, table = self.state.schema, self.state.table
        try:
            given = parse_path(name)
        except SchemaError as error:
            raise SchemaError(f"{error.text}. {NOTHING}", condition=error.condition) from error
        path = inside_structs(schema, given)
        if path is None:
            raise not_there(schema, given, table, self.operation)
        there = find(schema, path)
        assert there is not None
        return path, there[1]

    def _expression(self, name: str, given: str | Expression) -> NewValue:
        path, field = self._target(name)
        owner = f"SET {show(path)} of the {self.operation} of {self.state.table}"
        if isinstance(given, str):
            if given.strip().lower() == _DEFAULT and len(path) == 1:
                return self._default(path, field)
            clause = read_row_expression(owner, given, self.now, CANNOT_RESOLVE_EXPRESSION.name, _REMEDY)
        else:
            tree = at_timestamp(given, self.now)
            clause = RowExpression(owner, str(given), tree, CANNOT_RESOLVE_EXPRESSION.name, _REMEDY)
        inputs = self.inputs or self.state.schema
        bound = clause.bound(inputs, self.timezone)
        source = bound.type
        assert source is not None  # what has no type cannot be evaluated
        if source == field.type or source == VOID:
            return NewValue(path, field, clause, bound)
        if is_nested(source) or is_nested(field.type) or VARIANT in (source, field.type):
            self._check_nested(path, field, source)
        elif not can_store(source, field.type, implicit=source == STRING):
            bound = clause.cast_to(field.type).bound(inputs, self.timezone)
        return NewValue(path, field, clause, bound)

    def _check_nested(self, path: Path, field: StructField, source: DataType) -> None:
        """Refuse what no value of the column is: structs with other fields, and other kinds of values."""
        for at, given, wanted, missing in lacking(source, field.type, show(path)):
            raise UPDATE_SCHEMA_MISMATCH_EXPRESSION(
                sourceType=str(given),
                column=at,
                table=self.state.table,
                targetType=str(wanted),
                wrong=f"{', '.join(missing)} is not given",
            )
        if VARIANT in (source, field.type) or not can_store(source, field.type, implicit=True):
            raise FAILED_TO_MERGE_FIELDS(
                currentField=show(path), tableType=field.type, dataType=source, updateField=show(path)
            )

    def _constant(self, name: str, value: Any) -> NewValue:
        path, field = self._target(name)
        try:
            return NewValue(path, field, constant=constant_array(value, field, self.timezone, show(path)))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            if isinstance(error, DeltaError):
                raise
            raise InvalidOptionError(
                f"{self.operation} of {self.state.table}: {value!r} is no value for {show(path)} of type "
                f"{field.type}: {error}. {NOTHING}",
                parameters={"column": show(path)},
            ) from error

    def _default(self, path: Path, field: StructField) -> NewValue:
        """The word `DEFAULT`: the default of the column, or null without one."""
        default = read_default(field, self.state.protocol.supported, self.now, self.state.table)
        if default is None:
            return NewValue(path, field, constant=pa.nulls(1, arrow_type(field.type)))
        return NewValue(path, field, constant=default.value(self.timezone))

    def _check_once(self, paths: list[Path]) -> None:
        for n, path in enumerate(paths):
            for other in paths[:n]:
                shorter = min(path, other, key=len)
                if path[: len(shorter)] == other[: len(shorter)]:
                    raise CONFLICT_SET_COLUMN(
                        operation=self.operation,
                        table=self.state.table,
                        column=show(shorter),
                        columns=[show(other), show(path)],
                    )
