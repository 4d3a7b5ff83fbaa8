"""`column = expression` assignments, resolved to one value per column of the table.

Source: delta-spark, `UpdateExpressionsSupport.generateUpdateExpressions` and `PreprocessTableMerge`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import (
    CONFLICT_SET_COLUMN,
    DUPLICATE_COLUMNS_ON_INSERT,
    UNSUPPORTED_NESTED_FIELD_IN_OPERATION,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.commands.dml.new_values import NOTHING, check_identities, inside_structs, not_there
from delta_ds.kernel.format.schema.column_paths import Path, parse_path, show
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT
from delta_ds.kernel.format.schema.types import DataType, StructField, StructType
from delta_ds.records import dataclass
from delta_ds.spark.commands.store_casts import Before, StoreCast
from delta_ds.spark.engines.seam.expressions import source_text

if TYPE_CHECKING:
    from pyspark.sql import Column

    from delta_ds.spark.engines.seam.expressions import Resolved


@dataclass(frozen=True)
class Assignment:
    """A value for a column or a field of a struct.

    Attributes
    ----------
    path
        Names below one another, in any case.
    value, type
        What it gets.
    keeps
        Whether fields of structs that the value does not have keep what they were, instead of becoming null: what
        `UPDATE *` with schema evolution does.
    """

    path: Path
    value: Column
    type: DataType
    keeps: bool = False


def assign(
    schema: StructType,
    current: Callable[[str], Column] | None,
    assignments: Sequence[tuple[str | Column, Resolved]],
    *,
    cast: StoreCast,
    operation: str,
    alias: str | None = None,
    current_schema: StructType | None = None,
    generated: Collection[str] = (),
) -> list[Column | None]:
    """The columns of rows after an UPDATE, or of rows that are inserted.

    Parameters
    ----------
    schema
        The table's, with what schema evolution adds to it.
    current
        The value of a column before the update, by its name in the table; None for an insert.
    assignments
        Columns as in Spark SQL (`s.a` is a field, `` `a.b` `` a column) and their values.
    cast
        How values become those of their columns.
    operation
        For messages, in capitals: `UPDATE`, `INSERT`, ...
    alias
        The name by which columns may be qualified.
    current_schema
        The types of what `current` gives; the table's where left out.
    generated
        Columns that are computed from others where they are not assigned to.

    Returns
    -------
    list of Column or None
        One for each column of `schema`, of its type but for nullability. None where a value is still to be found: a
        generated column that is not assigned to, and in an insert every column that is not.

    Raises
    ------
    SchemaError
        A column is not there, is assigned to twice, or is no struct that has such a field; a value does not fit.
    UnsupportedOperationError
        A value for an identity column.
    """
    exact = cast.exact_names
    known = [
        Assignment(target_path(schema, name, cast.table, operation, alias, exact), value.column, value.type)
        for name, value in assignments
    ]
    return align(
        schema,
        current,
        known,
        cast=cast,
        operation=operation,
        current_schema=current_schema,
        generated=generated,
    )


def align(
    schema: StructType,
    current: Callable[[str], Column] | None,
    assignments: Sequence[Assignment],
    *,
    cast: StoreCast,
    operation: str,
    current_schema: StructType | None = None,
    generated: Collection[str] = (),
) -> list[Column | None]:
    """As `assign`, of paths that are known to be there. Without assignments: rows as they are, in the new schema."""
    table = cast.table
    check_identities(schema, [a.path for a in assignments], table, insert=current is None)
    if current is None:
        _check_insert(assignments, table, operation)
    builder = _Builder(cast, table, operation)
    before_all = current_schema or schema
    computed = {name.lower() for name in generated}
    values: list[Column | None] = []
    for field in schema:
        given = [a for a in assignments if a.path[0].lower() == field.name.lower()]
        there = before_all.find(field.name)
        before = None
        if current is not None and there is not None:
            before = Before(current(there.name), there.type)
        if not given and (current is None or field.name.lower() in computed):
            values.append(None)
        else:
            values.append(builder.value(field, (field.name,), given, before))
    return values


@dataclass(frozen=True)
class _Builder:
    cast: StoreCast
    table: str
    operation: str

    def value(
        self, field: StructField, path: Path, given: Sequence[Assignment], before: Before | None
    ) -> Column:
        """The value of a column or field; the paths of what is given to it begin with its own name."""
        from pyspark.sql import functions as F

        if not given:
            if before is None:
                return self.cast.null(field.type)
            return self.cast.cast(before.value, before.type, field.type, show(path))
        whole = [a for a in given if len(a.path) == 1]
        if whole:
            if len(given) > 1:
                raise self._conflict(path, given)
            kept = before if whole[0].keeps else None
            return self.cast.cast(whole[0].value, whole[0].type, field.type, show(path), kept)
        assert isinstance(field.type, StructType)
        parts = []
        for f in field.type:
            inside = [
                Assignment(a.path[1:], a.value, a.type, a.keeps)
                for a in given
                if a.path[1].lower() == f.name.lower()
            ]
            kept = before.field(f.name) if before is not None else None
            parts.append(self.value(f, (*path, f.name), inside, kept).alias(f.name, metadata={}))
        return F.struct(*parts)

    def _conflict(self, path: Path, given: Sequence[Assignment]) -> SchemaError:
        columns = [show((*path[:-1], *a.path)) for a in given]
        return CONFLICT_SET_COLUMN(
            operation=self.operation, table=self.table, column=show(path), columns=columns
        )


# --- names


def assigned_names(schema: StructType, keys: Iterable[str | Column], *, alias: str | None = None) -> set[str]:
    """The columns of a table, in its case, that assignments to columns and fields change; unknown ones left out."""
    paths = (find_target(schema, key, alias) for key in keys)
    return {path[0] for path in paths if path is not None}


def with_defaults(
    schema: StructType, assignments: Mapping[str, Any], *, alias: str | None = None
) -> dict[str, Any]:
    """The assignments of an UPDATE with the word `DEFAULT` replaced by the column's default, or null without one."""
    spelled = dict(assignments)
    for key, value in assignments.items():
        if isinstance(value, str) and value.strip().upper() == "DEFAULT":
            path = find_target(schema, key, alias)
            field = schema.find(path[0]) if path is not None and len(path) == 1 else None
            if field is not None:
                spelled[key] = field.metadata.get(CURRENT_DEFAULT, "NULL")
    return spelled


def target_path(
    schema: StructType,
    name: str | Column,
    table: str,
    operation: str,
    alias: str | None = None,
    exact: bool = False,
) -> Path:
    """The names of a column or field that is assigned to, in the table's case, which `exact` ones have to have.

    Raises
    ------
    SchemaError
        It is not there (with the nearest name), or inside an array or map.
    """
    path = find_target(schema, name, alias, exact)
    if path is None:
        raise not_there(schema, _path(name), table, operation)
    return path


def find_target(
    schema: StructType, name: str | Column, alias: str | None = None, exact: bool = False
) -> Path | None:
    """As `target_path`; None for what is not there."""
    path = _path(name)
    qualified = alias is not None and len(path) > 1 and path[0].lower() == alias.lower()
    for given in (path[1:], path) if qualified else (path,):
        found = inside_structs(schema, given)
        if found is not None and (found == given or not exact):
            return found
    return None


def _path(name: str | Column) -> Path:
    try:
        return parse_path(source_text(name))
    except SchemaError as error:
        raise SchemaError(f"{error.text}. {NOTHING}", condition=error.condition) from error


# --- what may not be assigned to


def _check_insert(assignments: Sequence[Assignment], table: str, operation: str) -> None:
    """Refuse fields of structs, and columns that are given twice.

    Differs: delta-spark takes one of two names that differ in case, and drops the other's value.
    """
    seen: set[str] = set()
    for assignment in assignments:
        if len(assignment.path) > 1:
            raise UNSUPPORTED_NESTED_FIELD_IN_OPERATION(
                operation=operation, table=table, column=show(assignment.path)
            )
        name = assignment.path[0].lower()
        if name in seen:
            raise DUPLICATE_COLUMNS_ON_INSERT(operation=operation, table=table, column=assignment.path[0])
        seen.add(name)
