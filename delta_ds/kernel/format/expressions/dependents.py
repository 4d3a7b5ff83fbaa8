"""The CHECK constraints and generated columns that use a column.

Source: delta-spark, `SchemaUtils.containsDependentExpression` (protocol-checklist CON-W-04).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_ds.conditions.columns import (
    CONSTRAINT_DATA_TYPE_MISMATCH,
    CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
    GENERATED_COLUMNS_DATA_TYPE_MISMATCH,
    GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE,
)
from delta_ds.conditions.expressions import GENERATED_COLUMN_KEEPS_TYPE
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.sql import parse_definition
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, parts_of
from delta_ds.kernel.format.schema.column_paths import Path, child, find, show
from delta_ds.kernel.format.schema.field_metadata import GENERATION_EXPRESSION
from delta_ds.kernel.format.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    sql_name,
    walk,
)

CONSTRAINT_PREFIX = "delta.constraints."


def dependent_constraints(schema: StructType, properties: Mapping[str, str], path: Path) -> dict[str, str]:
    """The CHECK constraints, name to SQL, that use the column, a field of it, or what it is a field of."""
    checks = {
        key.removeprefix(CONSTRAINT_PREFIX): text
        for key, text in properties.items()
        if key.startswith(CONSTRAINT_PREFIX)
    }
    return {name: text for name, text in checks.items() if _uses(schema, text, path, f"constraint {name}")}


def dependent_columns(schema: StructType, path: Path) -> dict[str, str]:
    """The generated columns, name to SQL, whose expression uses the column."""
    expressions = {
        show(at): str(field.metadata[GENERATION_EXPRESSION])
        for at, field in walk(schema)
        if GENERATION_EXPRESSION in field.metadata
    }
    return {
        name: text
        for name, text in expressions.items()
        if _uses(schema, text, path, f"generated column {name}")
    }


def check_unused(
    schema: StructType, properties: Mapping[str, str], path: Path, table: str, *,
    retyped: tuple[DataType, DataType] | None = None, change: str = "altered",
) -> None:  # fmt: skip
    """Refuse to change a column that constraints or generated columns use.

    Parameters
    ----------
    retyped
        Its type and the other one of data that would change it; None: a command changes it.
    change
        What cannot happen to the column, for the message.

    Raises
    ------
    SchemaError
        With every expression.
    """
    for users, changed, mismatch in (
        (
            dependent_constraints(schema, properties, path),
            CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
            CONSTRAINT_DATA_TYPE_MISMATCH,
        ),
        (
            dependent_columns(schema, path),
            GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE,
            GENERATED_COLUMNS_DATA_TYPE_MISMATCH,
        ),
    ):
        if users:
            listed = "; ".join(f"{name}: {text}" for name, text in users.items())
            values = {
                "column": show(path),
                "table": table,
                "change": change,
                "listed": listed,
                "dependents": users,
            }
            if retyped is None:
                raise changed(**values)
            raise mismatch(**values, columnType=sql_name(retyped[0]), dataType=sql_name(retyped[1]))


def check_generated_type(path: Path, field: StructField, new: DataType, table: str) -> None:
    """Refuse another type for a generated column: its expression keeps the type it has.

    Raises
    ------
    SchemaError
        `DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH`.
    """
    text = field.metadata.get(GENERATION_EXPRESSION)
    if text is not None:
        raise GENERATED_COLUMN_KEEPS_TYPE(
            column=show(path),
            table=table,
            expression=text,
            expressionType=sql_name(field.type),
            columnType=sql_name(new),
            type=field.type,
            new=new,
        )


def _uses(schema: StructType, text: str, path: Path, what: str) -> bool:
    wanted = [name.lower() for name in path]
    try:
        used = list(referenced_columns(parse_definition(text), schema))
    except PredicateError as error:
        raise PredicateError(
            f"cannot tell whether the {what} uses column {show(path)}, its expression is not understood: {error.text}. "
            "Nothing was changed",
            condition=error.condition,
        ) from error
    return any(all(a.lower() == b for a, b in zip(one, wanted, strict=False)) for one in used)


def referenced_columns(expression: Expression, schema: StructType) -> Iterator[Path]:
    """The paths of the columns that an unbound expression reads, as deep as it reads them."""
    pending = [expression]
    while pending:
        node = pending.pop()
        path = _path(node, schema)
        if path is None:
            pending.extend(reversed(parts_of(node)))
        else:
            yield path
            yield from _on_the_way(node, schema)


def _on_the_way(expression: Expression, schema: StructType) -> Iterator[Path]:
    """What else is read to get at a field or item: the keys of a map, the columns of an index."""
    while isinstance(expression, Call):
        inside, key = expression.args[:2]
        above = _path(inside, schema)
        found = find(schema, above) if above is not None else None
        if above is not None and found is not None and isinstance(found[1].type, MapType):
            yield (*above, "key")
        yield from referenced_columns(key, schema)
        expression = inside


def _path(expression: Expression, schema: StructType) -> Path | None:
    if isinstance(expression, Column):
        return _through_arrays(expression.path, schema)
    if not isinstance(expression, Call) or expression.name not in ("getfield", "getitem"):
        return None
    above = _path(expression.args[0], schema)
    if above is None:
        return None
    found = find(schema, above)
    inside: DataType | None = found[1].type if found else None
    if isinstance(inside, MapType):
        return (*above, "value")
    if isinstance(inside, ArrayType):
        above, inside = (*above, "element"), inside.element
        if expression.name == "getitem":
            return above
    key = expression.args[1]
    if isinstance(inside, StructType) and isinstance(key, Literal) and isinstance(key.value, str):
        return (*above, key.value)
    return above


def _through_arrays(path: Path, schema: StructType) -> Path:
    """`l.x` of an array of structs reads `l.element.x`, and `m.k` the value of a map."""
    out: list[str] = []
    level: DataType | None = schema
    for name in path:
        if isinstance(level, ArrayType):
            out.append("element")
            level = level.element
        if isinstance(level, MapType):
            out.append("value")
            level = level.value
            continue
        out.append(name)
        below = child(level, name) if level is not None else None
        level = below.type if below is not None else None
    return tuple(out)
