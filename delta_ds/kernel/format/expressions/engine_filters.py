"""Filters that other engines hand down, as far as they mean what Spark SQL means; the rest the engine does by itself.

The tree that comes out holds for every row for which the engine's filter holds, and for more. So files and rows that it
rules out may be left out, whatever the engine then does with the others.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, columns
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_ds.records import dataclass

Value: TypeAlias = "bool | int | float | str | Decimal | datetime.date | datetime.datetime"

# Written from the right to the left.
MIRRORED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Lists that are longer are not looked at: their place is a join.
MOST_VALUES = 2_000

_BITS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Part:
    """What was understood of a filter.

    Attributes
    ----------
    tree
        Not bound.
    exact
        Whether it says the same as the engine's, so that its negation may be believed too.
    """

    tree: Expression
    exact: bool = True


def compared(schema: StructType, operator: str, name: str, value: Value | None) -> Part | None:
    """The comparison of a column with a constant; None where the engine may answer otherwise than Spark.

    Parameters
    ----------
    operator
        As in `MIRRORED`.
    """
    field = _field(schema, name)
    if field is None or value is None or not _is_of(field, value):
        return None
    if _floats(field) and (operator == "<>" or value != value):  # NaN has a place in Spark's order
        return None
    return Part(Call(operator, (Column((field.name,)), _literal(field, value))), exact=not _floats(field))


def one_of(schema: StructType, name: str, values: Sequence[Value | None]) -> Part | None:
    """Whether a column has one of some values; None as for `compared`."""
    field = _field(schema, name)
    if field is None or not values or len(values) > MOST_VALUES or _floats(field):
        return None
    literals = [_literal(field, value) for value in values if value is not None and _is_of(field, value)]
    if len(literals) < len(values):
        return None
    return Part(Call("in", (Column((field.name,)), *literals)))


def tested_for_null(schema: StructType, name: str, *, is_null: bool) -> Part | None:
    """Whether a column is null, or not; None where there is no such column of plain values."""
    field = _field(schema, name)
    return (
        None if field is None else Part(Call("isnull" if is_null else "isnotnull", (Column((field.name,)),)))
    )


def flag(schema: StructType, name: str) -> Part | None:
    """A column of truth values as a condition; None where it is none."""
    field = _field(schema, name)
    return (
        Part(Call("=", (Column((field.name,)), Literal(True))))
        if field is not None and field.type == BOOLEAN
        else None
    )


def all_of(parts: Sequence[Part | None]) -> Part | None:
    """All of these; what is not understood is left out."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    exact = len(known) == len(parts) and all(part.exact for part in known)
    return known[0] if len(parts) == 1 else Part(_joined("and", known), exact)


def any_of(parts: Sequence[Part | None]) -> Part | None:
    """One of these; None where one is not understood."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return Part(_joined("or", known), all(part.exact for part in known))


def negated(part: Part | None) -> Part | None:
    """The negation; None of what is not the engine's filter exactly."""
    return Part(Call("not", (part.tree,))) if part is not None and part.exact else None


def names_of(tree: Expression) -> set[str]:
    """The top-level columns of a tree."""
    return {column.path[0] for column in columns(tree)}


def moment(micros: int, *, aware: bool) -> datetime.datetime | None:
    """A timestamp by its microseconds since 1970; None beyond the years of Python."""
    try:
        found = _EPOCH + datetime.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return found.replace(tzinfo=datetime.timezone.utc) if aware else found


def decimal(unscaled: int, scale: int) -> Decimal:
    """A decimal by its digits and how many of them are fractional, exactly: arithmetic would round it to 28 digits."""
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -scale))


def day(number: int) -> datetime.date | None:
    """A date by its days since 1970; None beyond the years of Python."""
    try:
        return _EPOCH.date() + datetime.timedelta(days=number)
    except OverflowError:
        return None


def _joined(name: str, parts: Sequence[Part]) -> Expression:
    return parts[0].tree if len(parts) == 1 else Call(name, tuple(part.tree for part in parts))


def _field(schema: StructType, name: str) -> StructField | None:
    """A column of plain values, by its name as the engine has it: in this case of letters."""
    field = schema.find(name)
    if field is None or field.name != name or not isinstance(field.type, (PrimitiveType, DecimalType)):
        return None
    return field


def _literal(field: StructField, value: Value) -> Literal:
    """A constant that `_is_of` a column. A decimal has the column's type: with another, both would be converted to
    a third, which may have fewer fractional digits than the column.
    """
    return Literal(value, field.type) if isinstance(field.type, DecimalType) else Literal(value)


def _floats(field: StructField) -> bool:
    return field.type in (FLOAT, DOUBLE)


def _is_of(field: StructField, value: Value) -> bool:
    """Whether a constant is a value of a column as it stands, so that no engine converts one of the two."""
    kind = field.type
    if isinstance(value, bool) or kind == BOOLEAN:
        return isinstance(value, bool) and kind == BOOLEAN
    if isinstance(kind, DecimalType):
        return isinstance(value, Decimal) and _fits(value, kind)
    if kind in _BITS:
        return isinstance(value, int) and -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1
    if kind == DOUBLE:
        return isinstance(value, float)
    if kind == FLOAT:
        return isinstance(value, float) and _is_single(value)
    if kind == STRING:
        return isinstance(value, str) and compares_by_bytes(field)
    if isinstance(value, datetime.datetime):
        return kind == (TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP)
    return kind == DATE and isinstance(value, datetime.date)


def _fits(value: Decimal, kind: DecimalType) -> bool:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > kind.scale:  # not finite; more fractional digits
        return False
    return not value or value.adjusted() < kind.precision - kind.scale


def _is_single(value: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False
