"""Functions of arrays and maps on Arrow values, by Spark's names; also those with lambdas.

These are `exists`, `forall`, `filter` and `transform` of arrays. A lambda is a call of `lambda` on its body and the
names of its variables; in the body each is a call of `variable` on its name. For evaluation the elements of all lists
stand below one another, with what the body reads of their rows.

Source: Spark, `higherOrderFunctions.scala`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import INVALID_ARRAY_INDEX, INVALID_INDEX_OF_ZERO
from delta_ds.kernel.base.arrow_buffers import bitmap, flags, integers, mask, numbers
from delta_ds.kernel.format.expressions.arrays import FALSE, array_of, plain_array, plain_values, spread
from delta_ds.kernel.format.expressions.casts import Value
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal, columns
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    INTEGER,
    LONG,
    ArrayType,
    DataType,
    MapType,
    arrow_type,
)

_Function = Callable[[Call, "list[Any]"], Value]


NAMES = frozenset(["exists", "forall", "filter", "transform"])
# Before the name of a variable, in the name of the column that has its values.
_VARIABLE = "\0"
_Steps = Generator["tuple[Expression, pa.RecordBatch]", Any, Any]


def length_of(args: Sequence[Value]) -> int:
    """How many rows the values of arguments have; one, if all are the same for every row."""
    return next((len(a) for a in args if not isinstance(a, pa.Scalar)), 1)


def array_of_lists(lists: Sequence[Sequence[Any] | None], data_type: ArrayType) -> pa.Array:
    """An Arrow array of lists of plain values, see `plain_array`."""
    offsets, values = [0], list[Any]()
    for items in lists:
        values.extend(items or ())
        offsets.append(len(values))
    inside = plain_array(values, data_type.element)
    valid = bitmap([items is not None for items in lists])
    return pa.Array.from_buffers(
        arrow_type(data_type),
        len(lists),
        [valid, plain_array(offsets, INTEGER).buffers()[1]],
        children=[inside],
    )


def lists_of(value: pa.Array, element: DataType) -> list[list[Any] | None]:
    """The plain values of an Arrow array of lists."""
    inside = plain_values(value.values, element)
    offsets, valid = value.offsets.to_pylist(), value.is_valid().to_pylist()
    return [inside[offsets[n] : offsets[n + 1]] if valid[n] else None for n in range(len(value))]


def _size(node: Call, args: list[Any]) -> Value:
    value = args[0]
    if isinstance(value.type, pa.MapType):
        lengths = [None if v is None else len(v) for v in spread(value, 1).to_pylist()]
        return array_of(lengths, INTEGER)
    return pc.list_value_length(value).cast(pa.int32())


def _element(node: Call, args: list[Any]) -> Value:
    """`getitem`, `get`, `element_at`, `try_element_at`; they differ in what a missing element is."""
    container_type = node.args[0].type
    length = length_of(args)
    containers = spread(args[0], length)
    items = spread(args[1], length).to_pylist()
    strict = node.name in ("getitem", "element_at")
    from_one = node.name in ("element_at", "try_element_at")
    positions: list[int | None] = []
    offsets = containers.offsets.to_pylist()
    valid = pc.is_valid(containers).to_pylist()
    keys = containers.keys.to_pylist() if isinstance(container_type, MapType) else []
    for row, item in enumerate(items):
        start, end = offsets[row], offsets[row + 1]
        if not valid[row] or item is None:
            positions.append(None)
        elif isinstance(container_type, MapType):
            positions.append(next((i for i in range(end - 1, start - 1, -1) if keys[i] == item), None))
        else:
            positions.append(_position(item, end - start, start, strict, from_one))
    elements = containers.items if isinstance(container_type, MapType) else containers.values
    return elements.take(array_of(positions, LONG))


def _position(item: int, size: int, start: int, strict: bool, from_one: bool) -> int | None:
    if from_one and item == 0:
        raise INVALID_INDEX_OF_ZERO(function="element_at")
    index = (item - 1 if item > 0 else size + item) if from_one else item
    if 0 <= index < size:
        return start + index
    if strict:
        raise INVALID_ARRAY_INDEX(item=item, size=size)
    return None


def _contains(node: Call, args: list[Any]) -> Value:
    """`array_contains` is null where the element is not found but the array holds a null."""
    length = length_of(args)
    wanted = spread(args[1], length).to_pylist()
    containers = spread(args[0], length).to_pylist()
    results: list[bool | None] = []
    for container, item in zip(containers, wanted, strict=True):
        if container is None or item is None:
            results.append(None)
            continue
        elements = [pair[0] for pair in container] if node.name == "map_contains_key" else container
        same = any(_equal(e, item) for e in elements)
        results.append(True if same else None if None in elements else False)
    return array_of(results, BOOLEAN)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124


def _map_part(part: str) -> _Function:
    def run(node: Call, args: list[Any]) -> Value:
        value = args[0]
        lists = pa.ListArray.from_arrays(value.offsets, getattr(value, part))
        missing = pa.nulls(len(value), lists.type)
        return pc.if_else(pc.is_valid(value), lists, missing)

    return run


def _array(node: Call, args: list[Any]) -> Value:
    assert isinstance(node.type, ArrayType)
    length, element = length_of(args), node.type.element
    columns = [plain_values(spread(value, length), element) for value in args]
    found = array_of_lists(list(zip(*columns, strict=True)) or [()] * length, node.type)
    return found[0] if all(isinstance(value, pa.Scalar) for value in args) else found


def _on_lists(function: Callable[..., Any]) -> _Function:
    """A Python function of one row's list and other arguments; a null in any of them gives null."""

    def run(node: Call, args: list[Any]) -> Value:
        kind, length = node.args[0].type, length_of(args)
        assert isinstance(kind, ArrayType) and node.type is not None
        columns: list[list[Any]] = [lists_of(spread(args[0], length), kind.element)]
        columns += [
            plain_values(spread(value, length), arg.type)
            for arg, value in zip(node.args[1:], args[1:], strict=True)
            if arg.type is not None
        ]
        rows = zip(*columns, strict=True)
        return plain_array(
            [None if None in row[1:] or row[0] is None else function(*row) for row in rows], node.type
        )

    return run


def _extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def run(items: list[Any]) -> Any:
        return choose((item for item in items if item is not None), key=_order, default=None)

    return run


def _order(item: Any) -> Any:
    """What orders items: NaN above all numbers, texts by their bytes."""
    if isinstance(item, float):
        return (item != item, 0.0 if item != item else item)  # noqa: PLR0124
    return item.encode() if isinstance(item, str) else item


def _array_position(items: list[Any], wanted: Any) -> int:
    return next((n + 1 for n, item in enumerate(items) if item is not None and _equal(item, wanted)), 0)


def _array_join(items: list[Any], separator: str, null: str | None = None) -> str:
    shown = [null if item is None else item for item in items]
    return separator.join(item for item in shown if item is not None)


RUN: dict[str, _Function] = {
    "size": _size,
    "array_size": _size,
    **dict.fromkeys(["getitem", "get", "element_at", "try_element_at"], _element),
    "array_contains": _contains,
    "map_contains_key": _contains,
    "map_keys": _map_part("keys"),
    "map_values": _map_part("items"),
    "array": _array,
    "array_max": _on_lists(_extreme(max)),
    "array_min": _on_lists(_extreme(min)),
    "array_position": _on_lists(_array_position),
    "array_join": _on_lists(_array_join),
}


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
