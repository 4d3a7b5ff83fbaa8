"""`column = expression` and `column = value`, planned: resolved against the table, and refused where they do not fit.

A value of Python is read as Arrow reads it where it stands alone, and stored by the rules for storing at any depth:
names of fields are the same in any case, a datetime without zone is meant in the session's, fields that are not given
are null.

Source: delta-spark, `UpdateExpressionsSupport.generateUpdateExpressions`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_ds.conditions.dml import (
    CANNOT_RESOLVE_EXPRESSION,
    CONFLICT_SET_COLUMN,
    UPDATE_SCHEMA_MISMATCH_EXPRESSION,
)
from delta_ds.conditions.schema import FAILED_TO_MERGE_FIELDS
from delta_ds.exceptions import DeltaError, InvalidOptionError, SchemaError
from delta_ds.kernel.commands.dml.new_values import (
    NOTHING,
    NewValue,
    NewValues,
    check_identities,
    inside_structs,
    lacking,
    not_there,
)
from delta_ds.kernel.files.read.column_conversion import struct_array
from delta_ds.kernel.files.rows.casts import Casting, can_store, compile_column
from delta_ds.kernel.files.rows.expressions import RowExpression, at_timestamp, read_row_expression
from delta_ds.kernel.files.rows.generated import read_default
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.schema.column_paths import Path, find, nearest_name, parse_path, show
from delta_ds.kernel.format.schema.types import (
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
    is_nested,
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


_LONGS = range(-(1 << 63), 1 << 63)


def constant_array(value: Any, field: StructField, timezone: str, path: str) -> pa.Array:
    """A value of Python as an array of one, in the Arrow type of a column.

    Parameters
    ----------
    value
        Structs are mappings, or tuples with a value for each field; maps are mappings, or pairs.
    field
        The column.
    timezone
        The session time zone.
    path
        The column's name in messages.

    Raises
    ------
    ValueError, TypeError, OverflowError, ArrowException
        It is no value of such a type; the text says why.
    SchemaError, InvariantViolationError
        It does not fit into the column.
    """
    return _array([value], field.type, timezone, path)


def _array(values: Sequence[Any], kind: DataType, timezone: str, path: str) -> pa.Array:
    values = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    if isinstance(kind, StructType):
        return _structs(values, kind, timezone, path)
    if isinstance(kind, ArrayType):
        return _lists(values, kind, timezone, path)
    if isinstance(kind, MapType):
        return _maps(values, kind, timezone, path)
    alike = len({type(value) for value in values}) == 1 and not isinstance(values[0], datetime.datetime)
    parts = [values] if alike else [[value] for value in values]
    target = arrow_type(kind)
    return pa.concat_arrays([pa.nulls(0, target), *(_leaves(part, kind, timezone, path) for part in parts)])


def _leaves(values: Sequence[Any], kind: DataType, timezone: str, path: str) -> pa.Array:
    """Values that are no structs, arrays or maps; of datetimes one at a time, each with its zone."""
    if any(isinstance(value, int) and value not in _LONGS for value in values):
        values = [_beyond_longs(value, kind) for value in values]
    found = pa.array(values)
    casting = Casting(timezone, implicit=pa.types.is_string(found.type))
    convert = compile_column(found.type, StructField("value", kind), casting, path)
    return found if convert is None else convert(found)


def _beyond_longs(value: int, kind: DataType) -> Any:
    """A whole number of any size as what Arrow takes; it is refused where no column holds it."""
    if kind in FRACTIONAL:
        return float(value)
    return Decimal(value) if isinstance(kind, DecimalType) else value


def _structs(values: Sequence[Any], kind: StructType, timezone: str, path: str) -> pa.Array:
    rows = [None if value is None else _fields(value, kind, path) for value in values]
    children = [
        _array(
            [None if row is None else row.get(field.name) for row in rows],
            field.type,
            timezone,
            f"{path}.{field.name}",
        )
        for field in kind
    ]
    return struct_array(children, arrow_type(kind), pa.array([None if row is None else True for row in rows]))


def _fields(value: Any, kind: StructType, path: str) -> dict[str, Any]:
    """The fields of a struct by the names of the table."""
    if isinstance(value, tuple):
        if len(value) != len(kind.fields):
            raise ValueError(
                f"{path} has the fields {', '.join(kind.names)}, but {len(value)} values are given"
            )
        return dict(zip(kind.names, value, strict=True))
    if not isinstance(value, Mapping):
        raise TypeError(f"{path} is a struct, which is given as a mapping from field to value")
    found: dict[str, Any] = {}
    for name, inside in value.items():
        field = kind.find(name) if isinstance(name, str) else None
        if field is None:
            near = nearest_name(str(name), kind.names)
            hint = f"did you mean {near!r}?" if near else f"its fields are {', '.join(kind.names)}"
            raise ValueError(f"{path} has no field {name!r}; {hint}")
        if field.name in found:
            raise ValueError(
                f"the field {field.name!r} of {path} is given twice; names are the same in any case"
            )
        found[field.name] = inside
    return found


def _lists(values: Sequence[Any], kind: ArrayType, timezone: str, path: str) -> pa.Array:
    items = [
        None if value is None else _items(value, path, "an array, which is given as a list")
        for value in values
    ]
    elements = _array([e for some in items for e in some or ()], kind.element, timezone, f"{path}.element")
    return pa.ListArray.from_arrays(_offsets(items), elements, type=arrow_type(kind))


def _maps(values: Sequence[Any], kind: MapType, timezone: str, path: str) -> pa.Array:
    what = "a map, which is given as a mapping"
    pairs = [
        None if value is None else _items(value.items() if isinstance(value, Mapping) else value, path, what)
        for value in values
    ]
    every = [(key, value) for some in pairs for key, value in some or ()]
    keys = _array([key for key, _ in every], kind.key, timezone, f"{path}.key")
    inside = _array([value for _, value in every], kind.value, timezone, f"{path}.value")
    return pa.MapArray.from_arrays(_offsets(pairs), keys, inside, type=arrow_type(kind))


def _items(value: Any, path: str, what: str) -> list[Any]:
    as_list: Callable[[], list[Any]] | None = getattr(value, "tolist", None)  # as arrays of NumPy have it
    if as_list is not None:
        value = as_list()
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (Sequence, Set)):
        raise TypeError(f"{path} is {what}")
    return list(value)


def _offsets(items: Sequence[Sequence[Any] | None]) -> pa.Array:
    """Where each begins; null for null."""
    found: list[int | None] = []
    end = 0
    for some in items:
        found.append(None if some is None else end)
        end += len(some or ())
    return pa.array([*found, end], pa.int32())
