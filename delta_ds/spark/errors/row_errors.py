"""Errors of row checks: raised inside a Spark query, translated to this package's errors.

The text of `raise_error` carries the error as JSON, with the values of the row. Whatever Spark wraps around it on the
way to the driver, the JSON is found again.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from delta_ds.events.spark import VIOLATING_VALUE_TOLD_AS_JSON
from delta_ds.exceptions import DeltaError, InvariantViolationError
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL
from delta_ds.kernel.format.schema.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
    is_nested,
    parse_schema,
    schema_to_json,
    without_metadata,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import Column


MARK = "pydelta-violation:"
# A query plan in a message may hold the marker too, but not where Spark starts to tell an error.
_WIDE = Context(prec=76)  # Python's own has 28 digits
_RAISED = re.compile(r"(?:\[USER_RAISED_EXCEPTION\] |Exception: )" + re.escape(MARK))
_VALUES, _VALUE, _MESSAGE = "values", "value", "message"
_FOUND = ', "found": '
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class ReportedValue:
    """A value of a row that an error reports.

    Attributes
    ----------
    text
        As Spark casts it to text; JSON of a nested value.
    kind
        The type of a nested value.
    """

    text: Column
    kind: DataType | None = None

    @classmethod
    def of(cls, value: Column, kind: DataType) -> ReportedValue:
        from pyspark.sql import functions as F

        if is_nested(kind):
            return cls(F.to_json(value, _JSON_OPTIONS), kind)
        return cls(value.cast("string"))


def error_column(error: DeltaError, values: Mapping[str, ReportedValue] | None = None) -> Column:
    """An expression of any type that raises an error.

    Parameters
    ----------
    error
        The error; with `values`, as it is for a row in which all of them are null.
    values
        The row's values by the names they have in the message; null is told as `null`. An error whose parameters
        have no `values` takes the only one as its `value`.
    """
    from pyspark.sql import functions as F

    kinds = {name: value.kind for name, value in (values or {}).items()}
    if not values:
        return F.raise_error(F.lit(_marker(error, kinds)))
    texts = F.to_json(F.array(*(v.text for v in values.values())))
    return F.raise_error(F.concat(F.lit(_marker(error, kinds)[:-1] + _FOUND), texts, F.lit("}")))


def error_sql(error: DeltaError, values: Mapping[str, str] | None = None) -> str:
    """The same as SQL for Spark's parser with its default settings.

    Parameters
    ----------
    values
        The row's values, none of them nested, as SQL.
    """
    marker = _marker(error, dict.fromkeys(values or ()))
    if not values:
        return f"raise_error({_text_literal(marker)})"
    texts = ", ".join(f"CAST({value} AS STRING)" for value in values.values())
    return f"raise_error(concat({_text_literal(marker[:-1] + _FOUND)}, to_json(array({texts})), '}}'))"


def _text_literal(text: str) -> str:
    # Spark puts in values for ${...} anywhere in a statement.
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def _marker(error: DeltaError, kinds: Mapping[str, DataType | None]) -> str:
    """What `raise_error` says of an error, as far as no value of the row is needed."""
    start, end = _split_message(error, list(kinds))
    report: dict[str, Any] = {
        "text": [start, end],
        "condition": error.condition,
        "parameters": error.parameters,
        "names": list(kinds),
        "types": [_schema_text(kind) for kind in kinds.values()],
    }
    return MARK + json.dumps(report)


def _split_message(error: DeltaError, names: list[str]) -> tuple[str, str]:
    """The parts of the message before and after the values."""
    if _VALUES in error.parameters:
        lines = _lines(dict.fromkeys(names, "null"))
        assert error.text.endswith(lines)
        return error.text[: len(error.text) - len(lines)], ""
    if names:
        start, _, end = error.text.rpartition('""')  # a predicate may stand before the value
        return f'{start}"', f'"{end}'
    return error.text, ""


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f" - {column} : {value}" for column, value in values.items())


def find_row_error(error: BaseException) -> DeltaError | None:
    """The error of this package that made a query fail; None if it failed for another reason.

    Parameters
    ----------
    error
        What pyspark or py4j raised.
    """
    for text in _texts(error):
        for found in _RAISED.finditer(text):
            report = _read(text[found.end() :])
            if report is not None:
                return _error_of(report)
    return None


def _read(text: str) -> dict[str, Any] | None:
    try:
        report, _ = json.JSONDecoder(strict=False).raw_decode(text)
    except ValueError:
        return None  # cut off, or somebody else's
    complete = (
        isinstance(report, dict) and {"text", "condition", "parameters", "names", "types"} <= report.keys()
    )
    return report if complete else None


def _error_of(report: dict[str, Any]) -> DeltaError:
    parameters = dict(report["parameters"])
    start, end = report["text"]
    middle = ""
    texts = [_value_text(*found) for found in zip(report.get("found", []), report["types"], strict=True)]
    if _VALUES in parameters:
        values = dict(zip(report["names"], texts, strict=True))
        parameters[_VALUES] = values
        middle = _lines(values)
        if _MESSAGE in parameters:
            # The error that led to this one, which tells the same values.
            nulls = _lines(dict.fromkeys(report["names"], "null"))
            parameters[_MESSAGE] = parameters[_MESSAGE].removesuffix(nulls) + middle
    elif texts:
        (middle,) = texts
        parameters[_VALUE] = middle
    return InvariantViolationError(
        f"{start}{middle}{end}", condition=report["condition"], parameters=parameters
    )


# --- nested values, which the Arrow path tells as Python writes them


def _schema_text(kind: DataType | None) -> str | None:
    return None if kind is None else schema_to_json(StructType((StructField("v", without_metadata(kind)),)))


def _value_text(found: str | None, schema: str | None) -> str:
    if found is None:
        return "null"
    if schema is None:
        return found
    import pyarrow as pa

    kind = parse_schema(schema).fields[0].type
    try:
        value = _parse_value(json.loads(found, parse_float=Decimal), kind)
        return str(pa.array([value], arrow_type(kind))[0].as_py())
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
        VIOLATING_VALUE_TOLD_AS_JSON.log(type=kind, reason=error)
        return found


def _parse_value(found: Any, kind: DataType) -> Any:
    """What `to_json` wrote, as Python has it."""
    if found is None:
        return None
    if isinstance(kind, StructType):
        return {f.name: _parse_value(found.get(f.name), f.type) for f in kind}
    if isinstance(kind, ArrayType):
        return [_parse_value(item, kind.element) for item in found]
    if isinstance(kind, MapType):
        return [(_parse_key(name, kind.key), _parse_value(item, kind.value)) for name, item in found.items()]
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return datetime.datetime.fromisoformat(found.replace("Z", "+00:00"))
    if kind == DATE:
        return datetime.date.fromisoformat(found)
    if kind == BINARY:
        return base64.b64decode(found)
    if isinstance(kind, DecimalType):
        return Decimal(found).quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    return float(found) if kind in FRACTIONAL else found


def _parse_key(name: str, kind: DataType) -> Any:
    return name if kind == STRING else _parse_value(json.loads(name, parse_float=Decimal), kind)


def _texts(error: BaseException) -> Iterator[str]:
    """The messages of an error and of its causes, in Python and in Java."""
    from py4j.protocol import Py4JError

    seen: BaseException | None = error
    while seen is not None:
        yield str(seen)
        java = getattr(seen, "_origin", None) or getattr(seen, "java_exception", None)
        for _ in range(20):  # a chain of causes is short, unless it is a circle
            if java is None:
                break
            try:
                yield f"Exception: {java.getMessage()}"
                yield str(java.getMessage())
                java = java.getCause()
            except Py4JError:
                break  # the gateway is gone; the texts are all there is
        seen = seen.__cause__ or seen.__context__
