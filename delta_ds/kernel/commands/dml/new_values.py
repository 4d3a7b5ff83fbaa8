"""New values of columns in UPDATE and MERGE: the paths that are set, and how the values are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from delta_ds.conditions.columns import FIELD_NOT_FOUND
from delta_ds.conditions.data import IDENTITY_COLUMNS_INSERT_NOT_SUPPORTED
from delta_ds.conditions.dml import (
    IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED,
    INVALID_EXTRACT_BASE_FIELD_TYPE,
    MERGE_UNRESOLVED_EXPRESSION,
    UNSUPPORTED_NESTED_FIELD_IN_UPDATE,
)
from delta_ds.conditions.schema import UNRESOLVED_COLUMN_WITH_SUGGESTION
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.files.read.column_conversion import repeat
from delta_ds.kernel.files.rows.casts import Casting, can_store, compile_column
from delta_ds.kernel.files.rows.expressions import RowExpression
from delta_ds.kernel.format.expressions.tree import Expression, columns
from delta_ds.kernel.format.operations import UPDATE
from delta_ds.kernel.format.schema.column_paths import Path, find, show, unresolved_column
from delta_ds.kernel.format.schema.field_metadata import IDENTITY_ALLOW_EXPLICIT_INSERT, IDENTITY_START
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class NewValue:
    """What a column, or a field of a struct, gets. Can be pickled.

    Attributes
    ----------
    path
        Names below one another, in the table's case.
    field
        The column or field.
    clause, bound
        The expression, and what it is bound to a schema; None for a constant.
    constant
        One value, as the table stores it; None for an expression.
    """

    path: Path
    field: StructField
    clause: RowExpression | None = None
    bound: Expression | None = None
    constant: pa.Array | None = None

    def of(self, rows: pa.RecordBatch, timezone: str) -> pa.Array:
        """The values in some rows as they were.

        Raises
        ------
        PredicateError
            Spark would raise too, on a division by zero, an overflow, ...
        InvariantViolationError
            A value does not fit into the column.
        """
        if self.constant is not None:
            return repeat(self.constant, rows.num_rows)
        assert self.clause is not None and self.bound is not None
        found = self.clause.evaluated(self.bound, rows)
        source, target = self.bound.type, self.field.type
        if source == target or source is None:
            return found
        # Text is read as the column's type, as CAST does; for all else the rules of storing say the same.
        casting = Casting(timezone, implicit=not can_store(source, target))
        convert = compile_column(found.type, self.field, casting, show(self.path))
        return found if convert is None else convert(found)


@dataclass(frozen=True, slots=True)
class NewValues:
    """The new values of columns, by expressions over the rows as they were. Can be pickled.

    Attributes
    ----------
    values
        No column or field twice, nor a field of a column that is given as a whole.
    timezone
        The session time zone.
    """

    values: tuple[NewValue, ...]
    timezone: str = "UTC"

    @property
    def names(self) -> list[str]:
        """The columns that get new values."""
        return list(dict.fromkeys(value.path[0] for value in self.values))

    @property
    def reads(self) -> set[str]:
        """The columns that have to be there to compute the values."""
        found = {column.path[0] for v in self.values if v.bound is not None for column in columns(v.bound)}
        return found | {value.path[0] for value in self.values if len(value.path) > 1}

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The new values of rows, by their columns as they were; errors as of `NewValue.of`."""
        found: dict[str, pa.Array] = {}
        for value in self.values:
            name, *inside = value.path
            new = value.of(rows, self.timezone)
            if inside:
                old = found.get(name)
                new = with_field(rows.column(name) if old is None else old, inside, new)
            found[name] = new
        return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


def with_field(structs: pa.Array, path: list[str], new: pa.Array) -> pa.Array:
    """Structs with another value for a field; what was null becomes one whose other fields are null."""
    name, *inside = path
    fields = list(structs.type)
    children = [field_of(structs, f.name) for f in fields]
    at = [f.name for f in fields].index(name)
    children[at] = with_field(children[at], inside, new) if inside else new
    return pa.StructArray.from_arrays(children, fields=fields)


NOTHING = "Nothing was written"


def inside_structs(schema: StructType, path: Path) -> Path | None:
    """A path of names in any case, in the table's; None for what is not there, or inside an array or map."""
    level: DataType = schema
    exact: list[str] = []
    for name in path:
        field = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            return None
        exact.append(field.name)
        level = field.type
    return tuple(exact)


def not_there(schema: StructType, path: Path, table: str, operation: str) -> SchemaError:
    """The error for a path that `inside_structs` does not find, with the nearest name."""
    for length in range(1, len(path)):
        above = find(schema, path[:length])
        if above is not None and isinstance(above[1].type, ArrayType | MapType):
            return UNSUPPORTED_NESTED_FIELD_IN_UPDATE(
                operation=operation, table=table, column=show(path), struct=show(above[0]), type=above[1].type
            )
        if above is not None and not isinstance(above[1].type, StructType):
            return INVALID_EXTRACT_BASE_FIELD_TYPE(
                operation=operation, table=table, column=show(path), struct=show(above[0]), type=above[1].type
            )
    known = unresolved_column(schema, path, table)
    nested = len(path) > 1 and schema.find(path[0]) is not None
    beginning = ""
    condition = FIELD_NOT_FOUND if nested else UNRESOLVED_COLUMN_WITH_SUGGESTION
    if operation != UPDATE.name and not nested:
        condition = MERGE_UNRESOLVED_EXPRESSION
        action = operation.rpartition(" ")[2]
        beginning = (
            f"Cannot resolve {show(path)} in {action} clause given columns {', '.join(schema.names)}: "
        )
    return SchemaError(
        f"{beginning}{operation}: {known.text.removesuffix('Nothing was changed')}{NOTHING}",
        condition=condition.name,
        parameters={
            **known.parameters,
            "sqlExpr": show(path),
            "clause": operation,
            "cols": schema.names,
        },
    )


def check_identities(schema: StructType, paths: Sequence[Path], table: str, *, insert: bool) -> None:
    """Refuse values for identity columns: in an update always, in an insert where the table makes them always.

    Raises
    ------
    UnsupportedOperationError
        `DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED` or `DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED`.

    Source: delta-spark, `IdentityColumn.blockIdentityColumn`.
    """
    for path in paths:
        field = schema.find(path[0])
        if field is None or IDENTITY_START not in field.metadata or len(path) > 1:
            continue
        if not insert:
            raise IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED(column=field.name, table=table)
        if not field.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT, False):
            raise IDENTITY_COLUMNS_INSERT_NOT_SUPPORTED(column=field.name, table=table)


def lacking(
    value: DataType, column: DataType, path: str
) -> Iterator[tuple[str, StructType, StructType, list[str]]]:
    """The structs in a value that lack fields of those in its column.

    Parameters
    ----------
    value, column
        Types.
    path
        The column, for messages.

    Returns
    -------
    Iterator
        Where, the two structs, and the fields that are not given; outer structs come first.
    """
    if isinstance(value, ArrayType) and isinstance(column, ArrayType):
        yield from lacking(value.element, column.element, f"{path}.element")
    elif isinstance(value, MapType) and isinstance(column, MapType):
        yield from lacking(value.key, column.key, f"{path}.key")
        yield from lacking(value.value, column.value, f"{path}.value")
    elif isinstance(value, StructType) and isinstance(column, StructType):
        missing = [f.name for f in column if value.find(f.name) is None]
        if missing:
            yield path, value, column, missing
        for field in column:
            given = value.find(field.name)
            if given is not None:
                yield from lacking(given.type, field.type, f"{path}.{field.name}")
