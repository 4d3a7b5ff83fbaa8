"""The new values that expressions give to columns of rows which change, computed where the rows are rewritten."""

from __future__ import annotations

import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.files.read.column_conversion import repeat
from delta_ds.kernel.files.rows.casts import Casting, can_store, compile_column
from delta_ds.kernel.files.rows.expressions import RowExpression
from delta_ds.kernel.format.expressions.tree import Expression, columns
from delta_ds.kernel.format.schema.column_paths import Path, show
from delta_ds.kernel.format.schema.types import StructField
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
