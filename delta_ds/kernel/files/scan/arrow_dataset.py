"""A scan as a dataset of pyarrow: what takes datasets reads tables with deletion vectors and column mapping by it.

pyarrow's own datasets of files know neither. This one answers with the rows of a scan, and hands columns and filters
down to it; Arrow then applies the filter to what comes back.

Filters of pyarrow become trees by their Substrait form: what Arrow tells of an expression in no other way. Substrait is
a format of Protocol Buffers. Of it are read the numbers and messages of `ExtendedExpression` that filters are made of:
fields, literals, lists of values, if-then-else, and functions by the names of Substrait's standard.

Source: https://substrait.io, `proto/substrait/algebra.proto`, `extended_expression.proto`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from delta_ds.conditions.data import DATASET_METHOD_NOT_SUPPORTED
from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.expressions import engine_filters as filters
from delta_ds.kernel.format.expressions.engine_filters import Part, Value, names_of
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType

# Columns by name, or new ones by their expressions.
Columns: TypeAlias = "Sequence[str] | Mapping[str, pc.Expression] | None"


# A message: the number of each field, with a number, bytes, or what was written in so many bytes.
_Message: TypeAlias = "dict[int, list[int | bytes]]"

_COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
# Of a filter that is looked at.
_MOST_CALLS, _MOST_LEVELS = 48, 11
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
# Fields of `Expression`.
_LITERAL, _SELECTION, _FUNCTION, _IF_THEN, _ONE_OF = 1, 2, 3, 6, 8


class ScanDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a scan as a dataset.

    Every method of `pyarrow.dataset.Dataset` is one of its own: those of the class work on an object of C++ that is not
    there. Keywords are those of `pyarrow.dataset.Scanner.from_batches`.
    """

    def __init__(self, scan: Scan, filter_: pc.Expression | None = None) -> None:
        scan.refuse_repeated_columns()
        self._scan, self._filter = scan, filter_
        self._arrow_schema = output_schema(scan.plan)

    @property
    def schema(self) -> pa.Schema:
        return self._arrow_schema

    @property
    def partition_expression(self) -> pc.Expression:
        """What holds for all rows: nothing."""
        return pc.scalar(True)

    def scanner(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:  # noqa: A002
        if options.pop("fragment_scan_options", None) is not None:
            self._refuse("fragment_scan_options")
        if self._filter is not None:
            filter = self._filter if filter is None else self._filter & filter  # noqa: A001
        return ds.Scanner.from_batches(
            self._narrowed(columns, filter).to_reader(),
            columns=self._arrow_schema.names if columns is None else columns,
            filter=filter,
            **options,
        )

    def _narrowed(self, columns: Columns, filter_: pc.Expression | None) -> Scan:
        """The scan of the columns that are asked for or filtered by."""
        names = self._arrow_schema.names
        asked = self._asked(columns, filter_)
        tree = None if filter_ is None else tree_of(filter_, self._arrow_schema, self._scan.snapshot.schema)
        if tree is not None:
            asked |= names_of(tree)
        # Arrow counts rows by a column.
        return self._scan.narrowed([name for name in names if name in asked] or names[:1], tree)

    def _asked(self, columns: Columns, filter_: pc.Expression | None) -> set[str]:
        names = self._arrow_schema.names
        if columns is None or not isinstance(columns, Mapping) and not set(columns) <= set(names):
            return set(names)
        # The text of an expression holds the name of each of its columns as it is.
        read = [] if filter_ is None else [filter_]
        texts = [
            _shown(each) for each in [*read, *(columns.values() if isinstance(columns, Mapping) else ())]
        ]
        if any(text is None or "FieldPath" in text for text in texts):  # by position among all columns
            return set(names)
        plain = set() if isinstance(columns, Mapping) else set(columns)
        return {name for name in names if name in plain or any(text and _is_in(name, text) for text in texts)}

    def to_table(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> pa.Table:  # noqa: A002
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Any,  # noqa: A002
    ) -> Iterator[pa.RecordBatch]:
        return self.scanner(columns, filter, **options).to_batches()  # type: ignore[no-any-return]

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002
        if filter is None and self._filter is None and not options:
            return self._scan.count()
        return int(self.scanner([], filter, **options).count_rows())

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Any,  # noqa: A002
    ) -> pa.Table:
        return self.scanner(columns, filter, **options).head(num_rows)

    def take(self, indices: pa.Array | Sequence[int], columns: Columns = None, **options: Any) -> pa.Table:
        return self.to_table(columns, **options).take(indices)

    def filter(self, expression: pc.Expression) -> ScanDataset:
        return ScanDataset(self._scan, expression if self._filter is None else self._filter & expression)

    def sort_by(self, sorting: Any, **options: Any) -> ds.Dataset:
        return self._held().sort_by(sorting, **options)

    def join(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.Dataset:
        return self._held().join(_held(right_dataset), *arguments, **options)

    def join_asof(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.Dataset:
        return self._held().join_asof(_held(right_dataset), *arguments, **options)

    def _held(self) -> ds.Dataset:
        """The rows in memory."""
        return ds.dataset(self.to_table())

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:  # noqa: A002
        self._refuse("get_fragments")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        self._refuse("replace_schema")

    def _get_fragments(self, filter: pc.Expression | None) -> NoReturn:  # noqa: A002
        self._refuse("get_fragments")

    def _scan_options(self, options: Any) -> NoReturn:
        self._refuse("_scan_options")

    def _scanner_options(self, options: Any) -> NoReturn:
        self._refuse("_scanner_options")

    def _refuse(self, name: str) -> NoReturn:
        snapshot = self._scan.snapshot
        raise DATASET_METHOD_NOT_SUPPORTED(name=name, table=snapshot.storage.url, version=snapshot.version)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a dataset of a Delta table is not pickled; make it where it is read, by to_pyarrow_dataset"
        )

    def __repr__(self) -> str:
        return f"ScanDataset({self._scan!r})"


def _shown(expression: pc.Expression) -> str | None:
    """The text of an expression; None where Arrow has cut off a long value in the middle of a letter."""
    try:
        return str(expression)
    except UnicodeDecodeError:
        return None


def _is_in(name: str, text: str) -> bool:
    if name not in text or not name.isidentifier():
        return name in text
    # Not `\b`: a name may end in a mark that Unicode counts to the letter before, which is no letter to `re`.
    return re.search(rf"(?<!\w){name}(?!\w)", text) is not None


def _held(dataset: Any) -> Any:
    return dataset._held() if isinstance(dataset, ScanDataset) else dataset


# --- filters of pyarrow to trees


def tree_of(filter_: pc.Expression, arrow_schema: pa.Schema, schema: StructType) -> Expression | None:
    """What a filter implies, as far as it is understood; None for nothing.

    Parameters
    ----------
    arrow_schema
        Of the rows that are filtered.
    schema
        Of the table.
    """
    import pyarrow as pa

    shown = _shown(filter_)
    if shown is None or _is_deep(shown, arrow_schema.names):
        return None
    try:
        text = bytes(filter_.to_substrait(arrow_schema))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None  # Substrait has no word for it, such as a cast that Arrow put in: Arrow filters by it
    part = _Filter.of(text, arrow_schema.names, schema).part
    return None if part is None else part.tree


def _is_deep(text: str, names: Sequence[str]) -> bool:
    """Whether the message of a filter would be large: Arrow writes the arguments of each call twice, so that it doubles
    with each level.

    The text of a filter has a pair of parentheses for each call.
    """
    if text.count("(") > _MOST_CALLS:
        return True
    depth = deepest = 0
    for sign in re.findall("[()]", _QUOTED.sub("", text)):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    if any(")" in name for name in names):  # a name is not quoted
        deepest = text.count("(")
    return deepest > _MOST_LEVELS


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter's message, and what its numbers mean."""

    expression: _Message
    functions: dict[int, str]
    names: Sequence[str]
    schema: StructType

    @classmethod
    def of(cls, data: bytes, names: Sequence[str], schema: StructType) -> _Filter:
        whole = _message(data)
        functions = {}
        for declared in _inner(whole, 2):
            for function in _inner(declared, 3):
                functions[_number(function, 2)] = _text(function, 3)
        return cls(_at(whole, 3, 1), functions, names, schema)

    @property
    def part(self) -> Part | None:
        return self._part(self.expression)

    def _part(self, node: _Message) -> Part | None:
        if _SELECTION in node:
            name = self._name(node)
            return None if name is None else filters.flag(self.schema, name)
        if _FUNCTION in node:
            return self._function(_at(node, _FUNCTION))
        if _ONE_OF in node:
            return self._one_of(_at(node, _ONE_OF))
        return self._guarded(_at(node, _IF_THEN)) if _IF_THEN in node else None

    def _function(self, call: _Message) -> Part | None:
        name = self.functions.get(_number(call, 1), "")
        arguments = [_at(each, 3) for each in _inner(call, 4)]
        if name in ("and", "or"):
            join = filters.all_of if name == "and" else filters.any_of
            return join([self._part(each) for each in arguments])
        if name == "not":
            return filters.negated(self._part(arguments[0]))
        if name in ("is_null", "is_not_null"):
            column = self._name(arguments[0])
            return column and filters.tested_for_null(self.schema, column, is_null=name == "is_null") or None
        sign = _COMPARISONS.get(name)
        if sign is None or len(arguments) != 2:
            return None
        left, right = arguments
        if _LITERAL in left:
            left, right, sign = right, left, filters.MIRRORED[sign]
        column = self._name(left)
        return column and filters.compared(self.schema, sign, column, _value(right)) or None

    def _one_of(self, node: _Message) -> Part | None:
        column = self._name(_at(node, 1))
        values = [_value(each) for each in _inner(node, 2)]
        part = column and filters.one_of(self.schema, column, values) or None
        # To Arrow null is not in a list, so that the negation holds for it.
        return None if part is None else Part(part.tree, exact=False)

    def _guarded(self, node: _Message) -> Part | None:
        """`if is_valid(a) then a in (...) else null`, as DuckDB writes it: implies what is behind `then`."""
        clauses = list(_inner(node, 1))
        otherwise = _at(node, 2)
        if len(clauses) != 1 or 29 not in _at(otherwise, _LITERAL):
            return None
        part = self._part(_at(clauses[0], 2))
        return None if part is None else Part(part.tree, exact=False)

    def _name(self, node: _Message) -> str | None:
        """The top-level column that a node is; None for anything else, fields of structs too."""
        if _SELECTION not in node:
            return None
        reference = _at(node, _SELECTION)
        direct = _at(reference, 1)
        step = _at(direct, 2)
        if 4 not in reference or 2 not in direct or 2 in step:  # not of the row itself; no field; deeper
            return None
        number = _number(step, 1)
        return self.names[number] if number < len(self.names) else None


def _value(node: _Message) -> Value | None:
    """The value of a literal: by the number of its field, as Substrait has its types."""
    literal = _at(node, _LITERAL) if _LITERAL in node else {}
    for kind in literal:
        (content, *_) = literal[kind]
        if isinstance(content, int):
            if kind == 1:
                return bool(content)
            if kind in (2, 3, 5, 7):
                return _signed(content)
            if kind == 16:
                return filters.day(_signed(content))
            if kind in (14, 27):
                return filters.moment(_signed(content), aware=kind == 27)
        elif kind in (10, 11):
            return float(struct.unpack("<f" if kind == 10 else "<d", content)[0])
        elif kind == 12:
            return content.decode()
        elif kind == 24:
            return _decimal(_message(content))
    return None


def _decimal(literal: _Message) -> Decimal:
    (unscaled, *_) = literal[1]
    assert isinstance(unscaled, bytes)
    return filters.decimal(int.from_bytes(unscaled, "little", signed=True), _signed(_number(literal, 3)))


# --- messages


def _message(data: bytes) -> _Message:
    found: _Message = {}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = 8 if wire == 1 else 4
        if wire == 2:
            size, at = _varint(data, at)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _inner(message: _Message, number: int) -> Iterator[_Message]:
    """The messages of a field, one after the other."""
    for value in message.get(number, ()):
        if isinstance(value, bytes):
            yield _message(value)


def _at(message: _Message, *numbers: int) -> _Message:
    """The message at a path of fields; an empty one where there is none."""
    for number in numbers:
        message = next(_inner(message, number), {})
    return message


def _number(message: _Message, field: int) -> int:
    (value, *_) = message.get(field, [0])
    return value if isinstance(value, int) else 0


def _text(message: _Message, field: int) -> str:
    (value, *_) = message.get(field, [b""])
    return value.decode() if isinstance(value, bytes) else ""


def _signed(value: int) -> int:
    """A number whose sign is in the highest of 64 bits."""
    return value - (1 << 64) if value >> 63 else value
