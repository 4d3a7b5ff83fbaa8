"""Functions with lambdas: `exists`, `forall`, `filter` and `transform` of arrays.

A lambda is a call of `lambda` on its body and the names of its variables; in the body each is a call of `variable` on
its name. For evaluation the elements of all lists stand below one another, with what the body reads of their rows.

Source: Spark, `higherOrderFunctions.scala`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import bitmap, flags, integers, mask, numbers
from delta_ds.kernel.format.expressions.arrays import FALSE, spread
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal, columns
from delta_ds.kernel.format.schema.types import BOOLEAN, INTEGER, ArrayType, DataType

NAMES = frozenset(["exists", "forall", "filter", "transform"])
# Before the name of a variable, in the name of the column that has its values.
_VARIABLE = "\0"
_Steps = Generator["tuple[Expression, pa.RecordBatch]", Any, Any]


def variable_types(name: str, container: DataType | None, count: int) -> list[DataType] | None:
    """The types of the variables of a lambda; None where the function takes no such lambda or container."""
    most = 2 if name in ("filter", "transform") else 1
    if not isinstance(container, ArrayType) or not 1 <= count <= most:
        return None
    return [container.element, INTEGER][:count]


def result_type(name: str, container: DataType, body: DataType | None) -> DataType | None:
    """The type of a call; None where the body cannot be evaluated or is no condition."""
    if name == "transform":
        return None if body is None else ArrayType(body)
    if body != BOOLEAN:
        return None
    return container if name == "filter" else BOOLEAN


def variable_column(name: str) -> str:
    """The column of the values of a variable."""
    return _VARIABLE + name.lower()


def evaluate_call(node: Call, batch: pa.RecordBatch, failing: frozenset[int]) -> _Steps:
    """The steps of a call, see `evaluate.py`."""
    lists = spread((yield node.args[0], batch), batch.num_rows)
    function = node.args[1]
    assert isinstance(function, Call)
    offsets = np.concatenate([[0], np.cumsum(_lengths(lists))])
    rows = np.repeat(np.arange(len(lists)), np.diff(offsets))
    elements = lists.flatten()
    body, names = function.args[0], [n.value for n in function.args[1:] if isinstance(n, Literal)]
    inside = _rows_of_elements(batch, body, rows)
    inside[variable_column(names[0])] = elements
    if len(names) > 1:
        inside[variable_column(names[1])] = integers(np.arange(len(rows)) - offsets[rows]).cast(pa.int32())
    results = yield body, pa.RecordBatch.from_arrays(list(inside.values()), list(inside))
    return _gathered(node, lists, offsets, rows, elements, spread(results, len(rows)))


def _lengths(lists: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    lengths = pc.list_value_length(lists).cast(pa.int64())
    return numbers(pc.if_else(lists.is_valid(), lengths, integers([0] * len(lists))))


def _rows_of_elements(batch: pa.RecordBatch, body: Expression, rows: Any) -> dict[str, pa.Array]:
    """What the body reads of the row of each element: columns, and the variables of lambdas around this one."""
    names = {column.path[0] for column in columns(body)}
    places = integers(rows)
    return {
        name: batch.column(n).take(places)
        for n, name in enumerate(batch.schema.names)
        if name in names or name.startswith(_VARIABLE)
    }


def _gathered(
    node: Call, lists: pa.Array, offsets: Any, rows: Any, elements: pa.Array, results: pa.Array
) -> pa.Array:
    if node.name == "transform":
        return _lists(offsets, results, lists)
    true = flags(pc.fill_null(results, FALSE))
    if node.name == "filter":
        filtered_offsets = np.concatenate([[0], np.cumsum(np.bincount(rows[true], minlength=len(lists)))])
        return _lists(filtered_offsets, elements.filter(mask(true)), lists)
    some = np.bincount(rows[true], minlength=len(lists)) > 0
    unknown = np.bincount(rows[flags(results.is_null())], minlength=len(lists)) > 0
    if node.name == "exists":
        is_known, answer = some | ~unknown, some
    else:
        false = flags(pc.fill_null(pc.invert(results), FALSE))
        broken = np.bincount(rows[false], minlength=len(lists)) > 0
        is_known, answer = broken | ~unknown, ~broken
    is_known &= flags(lists.is_valid())
    return pa.Array.from_buffers(pa.bool_(), len(lists), [bitmap(is_known), bitmap(answer)])


def _lists(offsets: Any, values: pa.Array, like: pa.Array) -> pa.Array:
    """Lists at offsets, null where others are."""
    kind = pa.list_(pa.field("element", values.type))
    buffers = [bitmap(flags(like.is_valid())), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(kind, len(like), buffers, children=[values])
