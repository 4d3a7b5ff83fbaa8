"""The casts of Catalyst that the kernel's `Cast` computes to the same value.

A cast that raises is no trouble: what cannot be evaluated keeps every file. One that gives another value, or null
where Spark gives a value, would lose rows, so whatever is not known to agree is left out: text of floating point
numbers (their digits depend on the Java version), text of bytes, fractions of seconds, `LEGACY` casts that wrap
around, `TRY` casts of text.

Source: Spark's `Cast` and `EvalMode`.
"""

from __future__ import annotations

from delta_ds.kernel.expressions.coercion import FRACTIONAL, INTEGER_BITS, INTEGRAL, TEMPORAL, as_decimal
from delta_ds.kernel.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)


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
