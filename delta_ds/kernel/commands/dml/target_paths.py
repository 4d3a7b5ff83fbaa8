"""The columns, and fields of structs, that assignments of UPDATE and MERGE name.

Source: delta-spark, `UpdateExpressionsSupport` and `IdentityColumn.blockIdentityColumn`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from delta_ds.kernel.format.operations import UPDATE
from delta_ds.kernel.format.schema.column_paths import Path, find, show, unresolved_column
from delta_ds.kernel.format.schema.field_metadata import IDENTITY_ALLOW_EXPLICIT_INSERT, IDENTITY_START
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructType

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
    condition = FIELD_NOT_FOUND if nested else UNRESOLVED_COLUMN_WITH_SUGGESTION
    if operation != UPDATE.name and not nested:
        condition = MERGE_UNRESOLVED_EXPRESSION
    return SchemaError(
        f"{operation}: {known.text.removesuffix('Nothing was changed')}{NOTHING}",
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
