"""Evaluate bound expressions on Arrow data in three-valued logic, as Spark does in ANSI mode.

NaN equals NaN and is above every number, -0.0 equals 0.0, a comparison with null is null. An operand that may
fail (a narrowing cast, a division) is computed only for the rows that reach it, so that
`x <> 0 AND 1 / x > 2` is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.format.expressions.arrays import (
    FALSE,
    TRUE,
    UNKNOWN,
    array_of,
    compare,
    scalar_of,
    spread,
    values_of,
)
from delta_ds.kernel.format.expressions.casts import Value, cast_value
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL, INTEGRAL
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    parts_of,
    postorder,
)
from delta_ds.kernel.format.schema.types import INTEGER, DecimalType, StructType, arrow_type, is_nested


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
    return pa.chunked_array(chunks, type=arrow_type(bound.type))


def can_evaluate(bound: Expression) -> bool:
    """Whether `evaluate` knows everything in the bound expression."""
    return unevaluable(bound) is None


def unevaluable(bound: Expression) -> Expression | None:
    """The innermost part of a bound expression that cannot be evaluated; None if there is none."""
    return next((node for node in postorder(bound) if not is_known(node)), None)


def is_known(node: Expression) -> bool:
    """Whether a node of a bound expression can be evaluated, given the values of the nodes below it."""
    if node.type is None or not isinstance(node, Call):
        return node.type is not None
    if node.name in _OPERATORS or node.name in _CHOICES or node.name in ("lambda", "variable"):
        return True
    from delta_ds.kernel.format.expressions import functions  # most filters need none

    return node.name in functions.RUN


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
    if not batch.num_rows and bound.type is not None:
        return pa.nulls(0, arrow_type(bound.type))
    try:
        return spread(_value(bound, batch, _failing_nodes(bound)), batch.num_rows)
    except pa.ArrowException as error:
        raise PredicateError(f"cannot evaluate {bound}: {error}") from error
    except OverflowError as error:
        raise PredicateError(f"cannot evaluate {bound}: a value is out of range ({error})") from error
    except UnicodeDecodeError as error:
        raise PredicateError(f"cannot evaluate {bound}: a text holds bytes that are not UTF-8") from error


# What computes a node asks for the values of others on some rows, is given them, and returns its own.
_Asked = tuple[Expression, pa.RecordBatch]
_Steps = Generator[_Asked, Value, Value]


def _value(root: Expression, batch: pa.RecordBatch, failing: frozenset[int]) -> Value:
    """The value of a node on some rows; the nodes below are computed in turn, not by calls within calls."""
    if isinstance(root, (Literal, Column)):
        return _leaf(root, batch)
    at_work = [_steps(root, batch, failing)]
    answer: Any = None
    while at_work:
        asked, answer = _advance(at_work, answer)
        if asked is None:
            continue
        node, rows = asked
        if isinstance(node, (Literal, Column)):
            answer = _leaf(node, rows)
        else:
            at_work.append(_steps(node, rows, failing))
            answer = None
    return answer


def _advance(at_work: list[_Steps], answer: Any) -> tuple[_Asked | None, Any]:
    """Give the last of those at work what it has asked for: what it asks next, or None and what it has found."""
    try:
        return at_work[-1].send(answer), None
    except StopIteration as done:
        at_work.pop()
        return None, done.value


def _leaf(node: Literal | Column, batch: pa.RecordBatch) -> Value:
    if isinstance(node, Column):
        return _column(node, batch)
    assert node.type is not None
    return scalar_of(node.value, node.type)


def _steps(node: Cast | Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    if isinstance(node, Cast):
        child = yield node.child, batch
        assert node.child.type is not None
        return cast_value(child, node.child.type, node.type, node.safe, node.timezone)
    if node.name == "variable" and isinstance(node.args[0], Literal):
        from delta_ds.kernel.format.expressions.functions_lists import variable_column

        return batch.column(variable_column(str(node.args[0].value)))
    choice = _CHOICES.get(node.name)
    if choice is not None:
        return (yield from choice(node, batch, failing))
    args: list[Value] = []
    for arg in node.args:
        reached = _rows_without_null(args) if id(arg) in failing and node.name not in _TAKES_NULL else None
        value = (yield arg, batch) if reached is None else (yield from _value_where(arg, batch, reached))
        args.append(value)
    operator = _OPERATORS.get(node.name)
    if operator is not None:
        return operator(node, args)
    from delta_ds.kernel.format.expressions import functions

    return functions.RUN[node.name](node, args)


def _column(column: Column, batch: pa.RecordBatch) -> pa.Array:
    index = batch.schema.get_field_index(column.path[0])
    if index < 0:
        raise PredicateError(f"the data has no column {column.path[0]!r}")
    array = batch.column(index)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    for name in column.path[1:]:
        array = field_of(array, name)
    assert column.type is not None
    if is_nested(column.type):
        return array
    target = arrow_type(column.type)
    return array if array.type == target else pc.cast(array, target)


# What looks at its second operand also where the first is null.
_TAKES_NULL = frozenset(["<=>", "array", "concat", "concat_ws", "greatest", "hash", "least", "xxhash64"])


def _rows_without_null(values: list[Value]) -> Value | None:
    """The rows in which no operand so far is null, where there are others; the next operand is computed for these."""
    without_null: Value | None = None
    for value in values:
        if isinstance(value, pa.Scalar) and not value.is_valid:
            return FALSE
        if not isinstance(value, pa.Scalar) and value.null_count:
            without_null = (
                value.is_valid() if without_null is None else pc.and_(without_null, value.is_valid())
            )
    return without_null


# --- logic and choice: operands that only some rows reach


def _and_or(node: Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    is_and = node.name == "and"
    combine = pc.and_kleene if is_and else pc.or_kleene
    result = yield node.args[0], batch
    for arg in node.args[1:]:
        if id(arg) in failing:
            # Rows that are decided already must not reach an operand that may fail on them.
            open_rows = pc.fill_null(pc.invert(result) if not is_and else result, TRUE)
            result = combine(result, (yield from _value_where(arg, batch, open_rows)))
        else:
            result = combine(result, (yield arg, batch))
    return result


def _value_where(node: Expression, batch: pa.RecordBatch, rows: Value) -> _Steps:
    """The value in the given rows, null in the others, which are not looked at."""
    assert node.type is not None
    rows = spread(rows, batch.num_rows)
    count = pc.sum(rows).as_py() or 0
    if count == 0:
        return pa.nulls(batch.num_rows, arrow_type(node.type))
    chosen = spread((yield node, batch.filter(rows)), count)
    if count == batch.num_rows:
        return chosen
    positions = pc.subtract(pc.cumulative_sum(rows.cast(pa.int64())), scalar_of(1, INTEGER))
    return chosen.take(pc.if_else(rows, positions, scalar_of(None, INTEGER)))


def _case(node: Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    assert node.type is not None
    rows = batch.num_rows
    result: Value = pa.nulls(rows, arrow_type(node.type))
    undecided: Value = pa.repeat(TRUE, rows)
    for condition, value in zip(node.args[::2], node.args[1::2], strict=False):
        holds = yield from _value_where(condition, batch, undecided)
        met = pc.and_(undecided, pc.fill_null(holds, FALSE))
        result = pc.if_else(met, (yield from _value_where(value, batch, met)), result)
        undecided = pc.and_not(undecided, met)
    if len(node.args) % 2:
        last = yield from _value_where(node.args[-1], batch, undecided)
        result = pc.if_else(undecided, last, result)
    return result


def _coalesce(node: Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    result: Value = spread((yield node.args[0], batch), batch.num_rows)
    for arg in node.args[1:]:
        missing = pc.is_null(result)
        result = pc.if_else(missing, (yield from _value_where(arg, batch, missing)), result)
    return result


def _in(node: Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    value, data_type = (yield node.args[0], batch), node.args[0].type
    assert data_type is not None
    constants = [a.value for a in node.args[1:] if isinstance(a, Literal)]
    if len(constants) > 8 and len(constants) == len(node.args) - 1 and data_type not in FRACTIONAL:
        items = array_of([c for c in constants if c is not None], data_type)
        is_among = pc.is_in(value, options=pc.SetLookupOptions(value_set=items))
        missed = UNKNOWN if None in constants else FALSE
        return pc.if_else(pc.is_null(value), UNKNOWN, pc.if_else(is_among, TRUE, missed))
    result: Value = FALSE
    for item in node.args[1:]:
        if id(item) in failing:
            # Spark looks at no more items once it has found the value, and at none for null.
            open_rows = pc.and_(pc.is_valid(value), pc.invert(pc.fill_null(result, FALSE)))
            other = yield from _value_where(item, batch, open_rows)
        else:
            other = yield item, batch
        result = pc.or_kleene(result, compare("=", value, other, data_type))
    return result


def _higher_order(node: Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    from delta_ds.kernel.format.expressions.functions_lists import evaluate_call

    return evaluate_call(node, batch, failing)


_CHOICES: dict[str, Callable[[Call, pa.RecordBatch, frozenset[int]], _Steps]] = {
    "and": _and_or,
    "or": _and_or,
    "case": _case,
    "coalesce": _coalesce,
    "in": _in,
    **dict.fromkeys(("exists", "forall", "filter", "transform"), _higher_order),
}


_FAILING = frozenset([
    "+", "-", "*", "/", "%", "div", "pmod", "negative", "abs", "getitem", "element_at", "pow", "make_date",
    "unhex", "date_trunc", "date_format", "add_interval", "date_add", "date_sub", "add_months", "last_day",
    "hex", "rlike", "regexp_replace", "regexp_extract", "split_part", "timestamp_seconds", "timestamp_millis",
    "hash", "xxhash64", "like", "ilike", "ceil", "floor", "round", "bround", "split", "regexp_count",
    "get_json_object", "from_unixtime", "from_utc_timestamp", "to_utc_timestamp", "next_day", "timestamp_micros",
    "ascii_upper", "ascii_lower",
])  # fmt: skip


def may_fail(node: Expression) -> bool:
    """Whether evaluation can raise on some value."""
    return id(node) in _failing_nodes(node)


def _failing_nodes(root: Expression) -> frozenset[int]:
    """The identities of the nodes whose evaluation can raise on some value."""
    failing: set[int] = set()
    for node in postorder(root):
        own = isinstance(node, Cast) or (isinstance(node, Call) and node.name in _FAILING)
        if own or any(id(part) in failing for part in parts_of(node)):
            failing.add(id(node))
    return frozenset(failing)


# --- comparison


def _comparison(node: Call, args: list[Value]) -> Value:
    data_type = node.args[0].type
    assert data_type is not None
    return compare(node.name, args[0], args[1], data_type)


# --- arithmetic


def _arithmetic(node: Call, args: list[Value]) -> Value:
    from delta_ds.kernel.format.expressions import functions

    types = [a.type for a in node.args if a.type is not None]
    assert node.type is not None
    if isinstance(types[0], DecimalType):
        return functions.decimal_arithmetic(node.name, (args[0], args[1]), types, node.type)
    if types[0] in INTEGRAL:
        return functions.whole_arithmetic(node.name, args[0], args[1], node.type)
    return functions.float_arithmetic(node.name, args[0], args[1], node.type)


def _getfield(node: Call, args: list[Value]) -> Value:
    child, name = node.args
    assert isinstance(name, Literal) and isinstance(child.type, StructType)
    return field_of(args[0], name.value)


_OPERATORS: dict[str, Callable[[Call, list[Value]], Value]] = {
    "not": lambda node, args: pc.invert(args[0]),
    "isnull": lambda node, args: pc.is_null(args[0]),
    "isnotnull": lambda node, args: pc.is_valid(args[0]),
    "getfield": _getfield,
    **dict.fromkeys(["=", "<=>", "<>", "<", "<=", ">", ">="], _comparison),
    **dict.fromkeys(["+", "-", "*", "/", "%", "div", "pmod"], _arithmetic),
}

__all__ = ["can_evaluate", "constant", "evaluate", "may_fail", "unevaluable"]
