"""Python values as SQL literals: what the `args` of `spark.sql` put in the place of markers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from delta_ds.exceptions import InvalidArgumentError
from delta_ds.spark.base.sql_grammar.tokens import Parameters

_DAY, _SECOND = 86_400_000_000, 1_000_000


def sql_parameters(args: Mapping[str, Any] | list[Any] | None) -> Parameters | None:
    """The literals for the `args` of `spark.sql`, by name or in order.

    Raises
    ------
    InvalidArgumentError
        A value has no literal.

    >>> sql_parameters({"name": "it's", "since": date(2024, 1, 31)})
    {'name': "'it\\\\'s'", 'since': "DATE'2024-01-31'"}
    """
    if args is None:
        return None
    if isinstance(args, Mapping):
        return {name: sql_literal(value) for name, value in args.items()}
    return [sql_literal(value) for value in args]


def sql_literal(value: Any) -> str:
    """A Python value as Spark SQL writes it, of the type that `lit` would give it.

    Raises
    ------
    InvalidArgumentError
        It has no literal.

    Differs: a `datetime` without zone is taken in the session's zone, as in SQL text, and not in the machine's.
    """
    # The classes below are classes of others: bool is an int, datetime a date.
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value) if -(1 << 31) <= value < 1 << 31 else f"{value}L"
    if isinstance(value, float):
        return f"{value!r}D" if abs(value) < float("inf") else f"DOUBLE('{value}')"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}BD"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, timedelta):
        return _interval(value)
    if isinstance(value, (list, tuple)):
        return f"ARRAY({', '.join(map(sql_literal, value))})"
    if isinstance(value, Mapping):
        pairs = (sql_literal(part) for pair in value.items() for part in pair)
        return f"MAP({', '.join(pairs)})"
    raise InvalidArgumentError(
        f"an argument of this statement is {value!r}, which has no literal in SQL: give a number, text, date, "
        "timestamp, list or dictionary, or write it into the statement"
    )


def _timestamp(value: datetime) -> str:
    if value.tzinfo is not None:
        return f"TIMESTAMP'{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(' ')}Z'"
    return f"TIMESTAMP'{value.isoformat(' ')}'"


def _interval(value: timedelta) -> str:
    micros = (value.days * 86_400 + value.seconds) * _SECOND + value.microseconds
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    days, rest = divmod(micros, _DAY)
    hours, rest = divmod(rest, 3600 * _SECOND)
    minutes, rest = divmod(rest, 60 * _SECOND)
    seconds, micros = divmod(rest, _SECOND)
    return f"INTERVAL '{sign}{days} {hours:02}:{minutes:02}:{seconds:02}.{micros:06}' DAY TO SECOND"
