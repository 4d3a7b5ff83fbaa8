"""Evaluate bound expressions on Arrow data in three-valued logic, as Spark does in ANSI mode.

NaN equals NaN and is above every number, -0.0 equals 0.0, a comparison with null is null. An operand that may
fail (a narrowing cast, a division) is computed only for the rows that reach it, so that
`x <> 0 AND 1 / x > 2` is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.arrays import (
    FALSE,
    TRUE,
    UNKNOWN,
    array_of,
    scalar_of,
    spread,
    storage_type,
    values_of,
)
from delta_ds.kernel.expressions.casts import Value, cast_value
from delta_ds.kernel.expressions.coercion import FRACTIONAL, INTEGRAL, is_nested
from delta_ds.kernel.expressions.comparison import compare
from delta_ds.kernel.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.schema.types import INTEGER, DecimalType, StructType


def evaluate(bound: Expression, data: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
    """Compute a bound expression for every row.

    Parameters
    ----------
    bound
        From `bind`, with the schema that `data` has (a subset of its columns is enough).
    data
        Columns by their logical names. Columns in a neighbouring Arrow type are cast.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        As long as `data`, chunked if `data` is a table, of the Arrow type of the expression's type.

    Raises
    ------
    PredicateError
        A function that cannot be evaluated (by name), a column missing from `data`, or a value on which Spark
        would raise too: an overflow, a division by zero, text that is not what it is cast to.
    """
    unknown = unevaluable(bound)
    if unknown is not None:
        raise PredicateError(f"{unknown} cannot be evaluated: {_reason(unknown)}")
    if isinstance(data, pa.RecordBatch):
        return _run(bound, data)
    assert bound.type is not None
    chunks = [_run(bound, batch) for batch in data.to_batches()]
    return pa.chunked_array(chunks, type=storage_type(bound.type))


def can_evaluate(bound: Expression) -> bool:
    """Whether `evaluate` knows everything in the bound expression."""
    return unevaluable(bound) is None


def unevaluable(bound: Expression) -> Expression | None:
    """The innermost part of a bound expression that cannot be evaluated; None if there is none."""
    children = (bound.child,) if isinstance(bound, Cast) else bound.args if isinstance(bound, Call) else ()
    for child in children:
        inner = unevaluable(child)
        if inner is not None:
            return inner
    known = bound.type is not None and (not isinstance(bound, Call) or _is_known(bound.name))
    return None if known else bound


def _is_known(name: str) -> bool:
    if name in _OPERATORS:
        return True
    from delta_ds.kernel.expressions import functions  # most filters need none

    return name in functions.RUN


def constant(bound: Expression) -> Any:
    """The Python value of an expression of constants, as `Literal` holds it."""
    row = pa.RecordBatch.from_arrays([pa.nulls(1)], ["_"])
    assert bound.type is not None
    return values_of(evaluate(bound, row), bound.type)[0]


def _reason(node: Expression) -> str:
    if isinstance(node, Call):
        types = ", ".join(str(a.type) for a in node.args)
        return f"{node.name!r} is not known for arguments of type ({types})"
    return "it was not bound to a schema; call bind() first"


def _run(bound: Expression, batch: pa.RecordBatch) -> pa.Array:
    try:
        return spread(_value(bound, batch), batch.num_rows)
    except pa.ArrowException as error:
        raise PredicateError(f"cannot evaluate {bound}: {error}") from error
    except OverflowError as error:
        raise PredicateError(f"cannot evaluate {bound}: a value is out of range ({error})") from error


def _value(node: Expression, batch: pa.RecordBatch) -> Value:
    if isinstance(node, Literal):
        assert node.type is not None
        return scalar_of(node.value, node.type)
    if isinstance(node, Column):
        return _column(node, batch)
    if isinstance(node, Cast):
        assert node.child.type is not None
        return cast_value(_value(node.child, batch), node.child.type, node.type, node.safe, node.timezone)
    operator = _OPERATORS.get(node.name)
    if operator is not None:
        return operator(node, batch)
    from delta_ds.kernel.expressions import functions

    return functions.RUN[node.name](node, [_value(a, batch) for a in node.args])


def _column(column: Column, batch: pa.RecordBatch) -> pa.Array:
    index = batch.schema.get_field_index(column.path[0])
    if index < 0:
        raise PredicateError(f"the data has no column {column.path[0]!r}")
    array = batch.column(index)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    for name in column.path[1:]:
        array = pc.struct_field(array, name)
    assert column.type is not None
    if is_nested(column.type):
        return array
    wanted = storage_type(column.type)
    return array if array.type == wanted else pc.cast(array, wanted)


# --- logic


def _and_or(node: Call, batch: pa.RecordBatch) -> Value:
    is_and = node.name == "and"
    combine = pc.and_kleene if is_and else pc.or_kleene
    result = _value(node.args[0], batch)
    for arg in node.args[1:]:
        if may_fail(arg):
            # Rows that are decided already must not reach an operand that may fail on them.
            open_rows = pc.fill_null(pc.invert(result) if not is_and else result, TRUE)
            result = combine(result, _value_where(arg, batch, open_rows))
        else:
            result = combine(result, _value(arg, batch))
    return result


def _value_where(node: Expression, batch: pa.RecordBatch, rows: Value) -> pa.Array:
    """The value in the given rows, null in the others, which are not looked at."""
    assert node.type is not None
    rows = spread(rows, batch.num_rows)
    chosen = spread(_value(node, batch.filter(rows)), pc.sum(rows).as_py() or 0)
    if len(chosen) == batch.num_rows:
        return chosen
    positions = pc.subtract(pc.cumulative_sum(rows.cast(pa.int64())), scalar_of(1, INTEGER))
    return chosen.take(pc.if_else(rows, positions, scalar_of(None, INTEGER)))


def _case(node: Call, batch: pa.RecordBatch) -> Value:
    assert node.type is not None
    rows = batch.num_rows
    result: Value = pa.nulls(rows, storage_type(node.type))
    undecided: Value = pa.repeat(TRUE, rows)
    for condition, value in zip(node.args[::2], node.args[1::2], strict=False):
        met = pc.and_(undecided, pc.fill_null(_value_where(condition, batch, undecided), FALSE))
        result = pc.if_else(met, _value_where(value, batch, met), result)
        undecided = pc.and_not(undecided, met)
    if len(node.args) % 2:
        result = pc.if_else(undecided, _value_where(node.args[-1], batch, undecided), result)
    return result


def _coalesce(node: Call, batch: pa.RecordBatch) -> Value:
    result: Value = spread(_value(node.args[0], batch), batch.num_rows)
    for arg in node.args[1:]:
        missing = pc.is_null(result)
        result = pc.if_else(missing, _value_where(arg, batch, missing), result)
    return result


_FAILING = frozenset(
    [
        "+",
        "-",
        "*",
        "/",
        "%",
        "div",
        "pmod",
        "negative",
        "abs",
        "getitem",
        "element_at",
        "pow",
        "make_date",
        "unhex",
        "date_trunc",
        "date_format",
        "add_interval",
        "date_add",
        "date_sub",
        "add_months",
        "last_day",
        "hex",
        "rlike",
        "regexp_replace",
        "regexp_extract",
        "split_part",
        "timestamp_seconds",
        "timestamp_millis",
        "hash",
        "like",
        "ilike",
    ]
)


def may_fail(node: Expression) -> bool:
    """Whether evaluation can raise on some value."""
    if isinstance(node, Cast):
        return True
    return isinstance(node, Call) and (node.name in _FAILING or any(map(may_fail, node.args)))


# --- comparison


def _comparison(node: Call, batch: pa.RecordBatch) -> Value:
    left, right = node.args
    assert left.type is not None
    return compare(node.name, _value(left, batch), _value(right, batch), left.type)


def _in(node: Call, batch: pa.RecordBatch) -> Value:
    value = _value(node.args[0], batch)
    data_type = node.args[0].type
    assert data_type is not None
    constants = [a.value for a in node.args[1:] if isinstance(a, Literal)]
    if len(constants) > 8 and len(constants) == len(node.args) - 1 and data_type not in FRACTIONAL:
        known = array_of([c for c in constants if c is not None], data_type)
        found = pc.is_in(value, options=pc.SetLookupOptions(value_set=known))
        missed = UNKNOWN if None in constants else FALSE
        return pc.if_else(pc.is_null(value), UNKNOWN, pc.if_else(found, TRUE, missed))
    result: Value = FALSE
    for item in node.args[1:]:
        result = pc.or_kleene(result, compare("=", value, _value(item, batch), data_type))
    return result


# --- arithmetic


def _arithmetic(node: Call, batch: pa.RecordBatch) -> Value:
    from delta_ds.kernel.expressions import functions

    left, right = (_value(a, batch) for a in node.args)
    types = [a.type for a in node.args if a.type is not None]
    assert node.type is not None
    if isinstance(types[0], DecimalType):
        return functions.decimal_arithmetic(node.name, (left, right), types, node.type)
    if types[0] in INTEGRAL:
        return functions.whole_arithmetic(node.name, left, right, node.type)
    return functions.float_arithmetic(node.name, left, right, node.type)


def _getfield(node: Call, batch: pa.RecordBatch) -> Value:
    child, name = node.args
    assert isinstance(name, Literal) and isinstance(child.type, StructType)
    return pc.struct_field(_value(child, batch), name.value)


_Operator = Callable[[Call, pa.RecordBatch], Value]
_OPERATORS: dict[str, _Operator] = {
    "and": _and_or,
    "or": _and_or,
    "not": lambda node, batch: pc.invert(_value(node.args[0], batch)),
    "isnull": lambda node, batch: pc.is_null(_value(node.args[0], batch)),
    "isnotnull": lambda node, batch: pc.is_valid(_value(node.args[0], batch)),
    "case": _case,
    "coalesce": _coalesce,
    "in": _in,
    "getfield": _getfield,
    **dict.fromkeys(["=", "<=>", "<>", "<", "<=", ">", ">="], _comparison),
    **dict.fromkeys(["+", "-", "*", "/", "%", "div", "pmod"], _arithmetic),
}

__all__ = ["can_evaluate", "constant", "evaluate", "may_fail", "unevaluable"]
