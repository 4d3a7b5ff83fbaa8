"""Catalyst's types and literals to the kernel's."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.arrays import from_micros
from delta_ds.kernel.expressions.casts import narrow
from delta_ds.kernel.expressions.temporal import parse_timestamp, to_local, to_utc, zone_of
from delta_ds.kernel.expressions.tree import Literal
from delta_ds.kernel.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    PRIMITIVES,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    DataType,
    DecimalType,
)
from delta_ds.spark.native.catalyst.nodes import Node

_EPOCH = datetime.date(1970, 1, 1).toordinal()
# Bytes that are no UTF-8 turn into it on the way to Python; what they were cannot be told any more.
_REPLACEMENT = "\ufffd"


def data_type(told: object) -> DataType | None:
    """The kernel's type for Catalyst's JSON of one; None for nested, collated, padded and unknown ones."""
    if not isinstance(told, str):
        return None
    if told.startswith("decimal(") and told.endswith(")"):
        precision, _, scale = told[len("decimal(") : -1].partition(",")
        return (
            DecimalType(int(precision), int(scale))
            if scale.lstrip("-").isdigit() and int(scale) >= 0
            else None
        )
    found = PRIMITIVES.get(told)
    return None if found == VARIANT else found


def constant(node: Node, timezone: str) -> Literal | None:
    """The constant of a Catalyst `Literal`; None if Python cannot hold or `toJSON` does not tell it.

    Parameters
    ----------
    timezone
        The zone of timestamps that are there as text.
    """
    found = data_type(node.fields.get("dataType"))
    told = node.fields.get("value")
    if found is None or (found == VOID and told is not None):
        return None
    if told is None:
        return Literal(None, found)
    return _constant(found, _value, told, timezone)


def items(node: Node, item_type: DataType) -> list[Literal] | None:
    """The values of a Catalyst `InSet` of that type; None if one of them cannot be told."""
    told = node.fields.get("hset")
    if not isinstance(told, list):
        return None
    out: list[Literal] = []
    for text in told:
        item = Literal(None, item_type) if text is None else _constant(item_type, _raw, text)
        if item is None:
            return None
        out.append(item)
    return out


def _constant(found: DataType, read: Callable[..., Any], *told: Any) -> Literal | None:
    try:
        value = read(found, *told)
    except (ValueError, OverflowError, InvalidOperation, PredicateError):
        # Outside the years 1 to 9999, or a form of text that this version of Spark does not write.
        return None
    return None if value is None else Literal(value, found)


def _value(found: DataType, told: Any, timezone: str) -> Any:
    if found == TIMESTAMP:
        return from_micros(told, True) if isinstance(told, int) else _instant(str(told), timezone)
    if found == DATE:
        return datetime.date.fromisoformat(told)
    return _raw(found, str(told))


def _raw(found: DataType, text: str) -> Any:
    """A value from the text of Catalyst's own form: days and microseconds as numbers."""
    if isinstance(found, DecimalType):
        return Decimal(text)
    return _READERS[found](text)


def _string(text: str) -> str | None:
    return None if _REPLACEMENT in text else text


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


_READERS: dict[DataType, Callable[[str], Any]] = {
    **dict.fromkeys((BYTE, SHORT, INTEGER, LONG), int),
    BOOLEAN: _boolean,
    DOUBLE: float,
    FLOAT: lambda text: narrow(float(text), FLOAT),
    STRING: _string,
    BINARY: bytes.fromhex,
    DATE: lambda text: datetime.date.fromordinal(int(text) + _EPOCH),
    TIMESTAMP: lambda text: from_micros(int(text), True),
    TIMESTAMP_NTZ: lambda text: from_micros(int(text), False),
}


def _instant(text: str, timezone: str) -> datetime.datetime | None:
    """The instant of a wall clock time; None where the clock shows that time twice."""
    zone = zone_of(timezone)
    local = parse_timestamp(text, None)
    if local is None:
        return None
    later = local.replace(tzinfo=zone, fold=1)
    early = to_utc(local, zone)
    twice = local - (later.utcoffset() or datetime.timedelta()) != early.replace(tzinfo=None)
    return None if twice or to_local(early, zone) != local else early
