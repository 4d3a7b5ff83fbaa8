"""Catalyst types, constants and casts to those of the kernel that mean the same.

A cast that raises is no trouble: what cannot be evaluated keeps every file. One that gives another value, or null
where Spark gives a value, would lose rows, so whatever is not known to agree is left out: text of floating point
numbers (their digits depend on the Java version), text of bytes, fractions of seconds, `LEGACY` casts that wrap
around, `TRY` casts of text.

Source: Spark, `Cast` and `EvalMode`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.casts import narrow
from delta_ds.kernel.format.expressions.coercion import (
    FRACTIONAL,
    INTEGER_BITS,
    INTEGRAL,
    TEMPORAL,
    as_decimal,
)
from delta_ds.kernel.format.expressions.moments import DAY_US, Timestamp, date_of, timestamp_of
from delta_ds.kernel.format.expressions.temporal import parse_date, parse_timestamp
from delta_ds.kernel.format.expressions.tree import Cast, Expression, Literal
from delta_ds.kernel.format.expressions.zones import instant_micros, local_micros, offset_at, zone_of
from delta_ds.kernel.format.schema.types import (
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
    is_nested,
)
from delta_ds.spark.engines.classic.catalyst_nodes import Node

# Bytes that are no UTF-8 turn into it on the way to Python; what they were cannot be told any more.
_REPLACEMENT = "\ufffd"


class OnlySpark(Exception):  # noqa: N818 - not an error: Spark does it
    """Something that Spark has to do, as the kernel cannot do it, or not as Spark does.

    Attributes
    ----------
    reason
        Why, in words for the log.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def data_type(raw: object) -> DataType | None:
    """The kernel's type for Catalyst's JSON of one; None for nested, collated, padded and unknown ones."""
    if not isinstance(raw, str):
        return None
    if raw.startswith("decimal(") and raw.endswith(")"):
        precision, _, scale = raw[len("decimal(") : -1].partition(",")
        return (
            DecimalType(int(precision), int(scale))
            if scale.lstrip("-").isdigit() and int(scale) >= 0
            else None
        )
    primitive = PRIMITIVES.get(raw)
    return None if primitive == VARIANT else primitive


def constant(node: Node, timezone: str) -> Literal | None:
    """The constant of a Catalyst `Literal`; None if Python cannot hold or `toJSON` does not tell it.

    Parameters
    ----------
    timezone
        The zone of timestamps that are there as text.
    """
    found = data_type(node.fields.get("dataType"))
    raw = node.fields.get("value")
    if found is None or (found == VOID and raw is not None):
        return None
    if raw is None:
        return Literal(None, found)
    return _constant(found, _value, raw, timezone)


def items(node: Node, item_type: DataType) -> list[Literal] | None:
    """The values of a Catalyst `InSet` of that type; None if one of them cannot be told."""
    raw = node.fields.get("hset")
    if not isinstance(raw, list):
        return None
    out: list[Literal] = []
    for text in raw:
        item = Literal(None, item_type) if text is None else _constant(item_type, _raw, text)
        if item is None:
            return None
        out.append(item)
    return out


def _constant(found: DataType, read: Callable[..., Any], *raw: Any) -> Literal | None:
    try:
        value = read(found, *raw)
    except (ValueError, OverflowError, InvalidOperation, PredicateError):
        # A form of text that this version of Spark does not write.
        return None
    return None if value is None else Literal(value, found)


def _value(found: DataType, raw: Any, timezone: str) -> Any:
    if found == TIMESTAMP:
        return timestamp_of(raw, True) if isinstance(raw, int) else _instant(str(raw), timezone)
    if found == DATE:
        days = parse_date(raw)
        return None if days is None else date_of(days)
    return _raw(found, str(raw))


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
    DATE: lambda text: date_of(int(text)),
    TIMESTAMP: lambda text: timestamp_of(int(text), True),
    TIMESTAMP_NTZ: lambda text: timestamp_of(int(text), False),
}


def _instant(text: str, timezone: str) -> Timestamp | None:
    """The instant of a wall clock time; None where the clock shows that time twice."""
    zone = zone_of(timezone)
    local = parse_timestamp(text, None)
    if local is None:
        return None
    early = instant_micros(local, zone)
    later = local - offset_at(early + DAY_US, zone)
    twice = later != early and local_micros(later, zone) == local
    return None if twice or local_micros(early, zone) != local else timestamp_of(early, True)


def agrees(source: DataType, target: DataType, mode: str | None, same_zone: bool) -> bool:
    """Tell whether the kernel's cast gives what Catalyst's gives, wherever neither raises.

    Parameters
    ----------
    mode
        Catalyst's `evalMode`: `ANSI`, `TRY` or `LEGACY`; None if not known.
    same_zone
        Whether the cast's time zone is the one that the kernel will bind with.
    """
    if source == target:
        return True
    zoned = TIMESTAMP in (source, target) and (source in (STRING, DATE, TIMESTAMP_NTZ) or target != TIMESTAMP)
    if zoned and not same_zone:
        return False
    if _in_every_mode(source, target):
        return True
    if mode == "TRY":
        return _is_exact_number(source) and _is_exact_number(target)
    return mode == "ANSI" and _in_ansi_mode(source, target)


def cast_alike(value: Expression, source: DataType, target: DataType) -> Expression:
    """A value as a column of another type stores it, where both raise or give the same.

    Raises
    ------
    OnlySpark
        The kernel's cast is not known to agree with Spark's.
    """
    if source in (target, VOID):
        return value
    if is_nested(source) or is_nested(target) or not agrees(source, target, "ANSI", True):
        raise OnlySpark(f"a cast of {source} to {target}")
    return Cast(value, target)


def _in_every_mode(source: DataType, target: DataType) -> bool:
    if source in TEMPORAL and target in TEMPORAL:
        return True
    if target in FRACTIONAL:
        return _is_exact_number(source) or (source == FLOAT and target == DOUBLE)
    if source == BOOLEAN:
        return target in INTEGRAL
    if source in INTEGRAL and target in INTEGRAL:
        return INTEGER_BITS[target] >= INTEGER_BITS[source]
    if _is_exact_number(source) and isinstance(target, DecimalType):
        narrow = as_decimal(source)
        return (
            target.scale >= narrow.scale
            and target.precision - target.scale >= narrow.precision - narrow.scale
        )
    return False


def _in_ansi_mode(source: DataType, target: DataType) -> bool:
    if source == STRING:
        return target != FLOAT
    if target == STRING:
        return source not in FRACTIONAL and source != BINARY
    if source in FRACTIONAL:
        return target in INTEGRAL or target == BOOLEAN
    if source == TIMESTAMP:
        return target in INTEGRAL
    if target == TIMESTAMP:
        return source in INTEGRAL
    return _is_exact_number(source) and (_is_exact_number(target) or target == BOOLEAN)


def _is_exact_number(data_type: DataType) -> bool:
    return data_type in INTEGRAL or isinstance(data_type, DecimalType)
