"""Row checks as Spark expressions, with the error each raises.

The twin of the `finder` and `violation` of each check of the kernel; message and order are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.files.rows.checks import Condition, Length, NotNull
from delta_ds.kernel.files.rows.plan import VERIFICATION, RowPlan, is_foreign
from delta_ds.kernel.format.expressions.tree import Call, columns
from delta_ds.kernel.format.expressions.tree import Column as TreeColumn
from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.types import (
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    arrow_schema,
)
from delta_ds.kernel.transaction.write.overwrite_scope import ReplaceCheck
from delta_ds.records import dataclass
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.jvm import NotNative
from delta_ds.spark.errors.row_errors import ReportedValue, error_column, error_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.engines.classic.sql_clauses import Analyst


_LIMIT = re.compile(r"\s*(?:var)?char\(\s*(\d+)\s*\)\s*")


@dataclass(frozen=True)
class Rule:
    """A row check as Spark expressions: columns, or SQL where there may be many.

    Attributes
    ----------
    broken
        Whether a row breaks it; null: it does not.
    error
        Raises.
    """

    broken: Column | str
    error: Column | str


def rules(plan: RowPlan, frame: DataFrame, analyst: Analyst) -> Iterator[Rule]:
    """The row checks of a plan, in its order.

    Parameters
    ----------
    plan
        Of the write.
    frame
        Rows as the table stores them, in the analyst's session.
    analyst
        Resolves SQL.

    Raises
    ------
    PredicateError, UnsupportedFeatureError
        An expression does not fit the table, or cannot be evaluated.
    NotNative
        A check that is not known here.
    """
    nulls = _row_of_nulls(plan.table)

    def error() -> DeltaError:
        violation = planned.violation(nulls, 0, plan.table, plan.timezone)
        assert isinstance(violation, DeltaError)
        return violation

    for planned in plan.checks:
        check = planned.check if isinstance(planned, ReplaceCheck) else planned
        if isinstance(check, Condition):
            if check.absent:
                raise NotNative(f"{check.clause.owner} names columns that the table does not have")
            broken = _violation_condition(check, frame, analyst, fixed=planned is not check)
            yield Rule(broken, error_column(error(), _values(check, plan.table)))
        elif isinstance(check, NotNull):
            yield Rule(f"{'.'.join(map(quoted, check.path))} IS NULL", error_sql(error()))
        elif isinstance(check, Length):
            field, limit = plan.table.find(check.column), _LIMIT.fullmatch(check.declared or "")
            if field is not None and field.type == STRING and limit:
                name = quoted(field.name)
                yield Rule(f"char_length({name}) > {limit[1]}", error_sql(error(), {check.column: name}))
            elif (text := _length(check, plan.table)) is not None:
                yield Rule(text.isNotNull(), error_column(error(), {check.column: ReportedValue(text)}))
        else:
            raise NotNative(f"the check {check!r} is not known here")


def _row_of_nulls(table: StructType) -> Any:
    import pyarrow as pa

    schema = arrow_schema(table)
    fields = [f.with_nullable(True) for f in schema]
    return pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in fields], schema=pa.schema(fields))


def value(path: tuple[str, ...]) -> Column:
    """A column, or a field inside structs, by its exact path."""
    from pyspark.sql import functions as F

    column = F.col(quoted(path[0]))
    for name in path[1:]:
        column = column.getField(name)
    return column


# --- expressions


def _violation_condition(check: Condition, frame: DataFrame, analyst: Analyst, *, fixed: bool) -> Column:
    """Whether a row fails a condition, at the time the write was planned."""
    from pyspark.sql import functions as F

    from delta_ds.kernel.format.expressions.sql import parse_definition

    clause = check.clause
    verified = verified_column(check)
    if verified is None:
        moves = fixed and not is_foreign(clause) and parse_definition(clause.text) != clause.tree
        text = str(clause.tree) if moves else clause.text
        passed = analyst.jvm.column(analyst.resolve(frame, clause, text, predicate=True))
    else:
        text = clause.text[len(verified) + len(" <=> ") :]
        passed = value((verified,)).eqNullSafe(analyst.jvm.column(analyst.resolve(frame, clause, text)))
    return ~F.coalesce(passed.cast("boolean"), F.lit(False))


def _values(check: Condition, table: StructType) -> dict[str, ReportedValue]:
    """The values that the error of a condition reports, by name."""
    paths = sorted(dict.fromkeys(_exact_path(c.path, table) for c in columns(check.clause.tree)))
    return {".".join(path): ReportedValue.of(value(path), _type_at(path, table)) for path in paths}


def _type_at(path: tuple[str, ...], table: StructType) -> DataType:
    kind: DataType = table
    for name in path:
        field = kind.find(name) if isinstance(kind, StructType) else None
        assert field is not None
        kind = field.type
    return kind


def verified_column(check: Condition) -> str | None:
    """The generated column whose given values a check verifies; None for any other check."""
    tree = check.clause.tree
    if check.name != VERIFICATION or not isinstance(tree, Call) or tree.name != "<=>":
        return None
    column = tree.args[0]
    if not isinstance(column, TreeColumn) or not check.clause.owner.startswith("generated column "):
        return None
    return column.path[0]


def _exact_path(path: tuple[str, ...], table: StructType) -> tuple[str, ...]:
    """The path in the table's spelling, as far as it leads through structs."""
    level: DataType = table
    exact: list[str] = []
    for name in path:
        field = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            break
        exact.append(field.name)
        level = field.type
    return tuple(exact)


# --- lengths


def _length(check: Length, table: StructType) -> Column | None:
    field = table.find(check.column)
    return None if field is None else _too_long(value((field.name,)), field.type, check.declared)


def _too_long(column: Column, kind: DataType, declared: str | None) -> Column | None:
    """The first text that is longer than declared, null if there is none; None where none is declared."""
    from pyspark.sql import functions as F

    if kind == STRING:
        limit = _LIMIT.fullmatch(declared or "")
        return F.when(F.char_length(column) > int(limit[1]), column) if limit else None
    if isinstance(kind, StructType):
        parts = char_varchar.of_struct(declared, kind)
        return _least_text(
            _too_long(column.getField(f.name), f.type, p) for f, p in zip(kind, parts, strict=True)
        )
    if isinstance(kind, ArrayType):
        part = char_varchar.of_element(declared)
        return _first_text(column, lambda item: _too_long(item, kind.element, part))
    if isinstance(kind, MapType):
        key, item = char_varchar.of_map(declared)

        def of_entry(entry: Column) -> Column | None:
            return _least_text(
                [
                    _too_long(entry.getField("key"), kind.key, key),
                    _too_long(entry.getField("value"), kind.value, item),
                ]
            )

        return _first_text(F.map_entries(column), of_entry)
    return None


def _least_text(texts: Iterable[Column | None]) -> Column | None:
    from pyspark.sql import functions as F

    columns = [text for text in texts if text is not None]
    return F.least(*columns) if len(columns) > 1 else next(iter(columns), None)


def _first_text(items: Column, text_of: Callable[[Column], Column | None]) -> Column | None:
    """The first text that items of an array give."""
    from pyspark.sql import functions as F

    if text_of(F.lit(None)) is None:
        return None
    texts = F.transform(items, lambda item: _require(text_of(item)))
    return F.get(F.filter(texts, lambda text: text.isNotNull()), F.lit(0))


def _require(text: Column | None) -> Column:
    assert text is not None
    return text
