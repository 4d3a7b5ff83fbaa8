"""`Column` objects as SQL text: the condition of `overwrite`, the columns of `partitionedBy`.

A classic session resolves a condition against the table's columns and prints it, as delta-spark does. A client of
Spark Connect has the expression as it was built: comparisons, logic, functions, literals and casts are written out,
everything else is refused.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from delta_ds.conditions.expressions import CONDITION_WITHOUT_SQL
from delta_ds.conditions.record import PARTITION_BY_EXPRESSION_NOT_ALLOWED
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Cast, Expression, Literal, fold, with_parts
from delta_ds.kernel.format.schema.types import STRING
from delta_ds.spark.base.kinds.frames import frame_of
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.engines.classic.jvm import Jvm, compile_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INFIX = {
    "==": "=", "=": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>",
    "and": "AND", "or": "OR", "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "like": "LIKE",
}  # fmt: skip
_POSTFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


def sql_of(spark: SparkSession, condition: Any, schema: StructType) -> str:
    """A condition on a table's columns as SQL.

    Parameters
    ----------
    spark
        The session.
    condition
        Of columns of the table.
    schema
        The table's.

    Raises
    ------
    PredicateError
        A client of Spark Connect cannot write it out.
    pyspark.errors.AnalysisException
        It names columns that are not there, or its types do not fit.
    """
    if is_connect(spark):
        return plain(sql_of_expression(condition._expr))
    rows = frame_of(spark, [], schema).where(condition)
    return sql_of_resolved(Jvm.of(spark), rows._jdf.queryExecution().analyzed().condition())


def sql_of_resolved(jvm: Jvm, condition: Any) -> str:
    """A condition that Spark has resolved as SQL; `true` only if it is the literal."""
    return plain(str(compile_class(jvm.jvm, jvm.gateway, "ConditionText").sql(condition)))


def plain(text: str) -> str:
    """A condition as the history of delta-spark has it: names bare, constants of the types that they are cast to."""
    try:
        tree = fold(parse_predicate(text), _without_cast)
    except PredicateError:  # only Spark can read it
        return text
    shown = str(tree)
    return text if isinstance(tree, Literal) or "CAST(" in shown else shown


def _without_cast(node: Expression, parts: list[Expression]) -> Expression:
    is_text = isinstance(node, Cast) and isinstance(parts[0], Literal) and isinstance(parts[0].value, str)
    return parts[0] if is_text and node.type == STRING else with_parts(node, parts)


def column_name(spark: SparkSession, column: Any) -> str:
    """The name of a column that a table is partitioned by.

    Raises
    ------
    UnsupportedOperationError
        It is no plain column but an expression, such as `years(...)`.
    """
    if isinstance(column, str):
        return column
    if is_connect(spark):
        parts = getattr(column._expr, "_unparsed_identifier", None)
        name = parts.strip("`").replace("``", "`") if isinstance(parts, str) else None
    else:
        node = column._jc.node()
        is_plain = node.getClass().getSimpleName() == "UnresolvedAttribute"
        name = node.nameParts().mkString(".") if is_plain else None
    if name is None:
        raise PARTITION_BY_EXPRESSION_NOT_ALLOWED(column=column)
    return str(name)


def sql_of_expression(node: Any) -> str:
    """An expression of a client of Spark Connect as SQL; raises as `sql_of`."""
    write = _WRITERS.get(type(node).__name__)
    if write is None:
        raise CONDITION_WITHOUT_SQL(what=f"the condition {node}")
    return write(node)


def _function(node: Any) -> str:
    name, arguments = node._name.lower(), [sql_of_expression(argument) for argument in node._args]
    if name in _INFIX and len(arguments) == 2:
        return f"({arguments[0]} {_INFIX[name]} {arguments[1]})"
    if name in _POSTFIX:
        return f"({arguments[0]} {_POSTFIX[name]})"
    if name in ("not", "!"):
        return f"(NOT {arguments[0]})"
    if name == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if name == "negative":
        return f"(- {arguments[0]})"
    if not name.isidentifier():
        raise CONDITION_WITHOUT_SQL(what=f"the operator {node._name}")
    return f"{name}({', '.join(arguments)})"


def _cast(node: Any) -> str:
    data_type = node._data_type
    name = data_type.simpleString() if isinstance(data_type, DataType) else str(data_type)
    word = "TRY_CAST" if getattr(node, "_eval_mode", None) == "try" else "CAST"
    return f"{word}({sql_of_expression(node._expr)} AS {name})"


def _literal(node: Any) -> str:
    """A literal of one of the types that a `Column` takes from Python values."""
    value, data_type = node._value, node._dataType
    if value is None or isinstance(data_type, NullType):
        return "NULL"
    for kind, write in _LITERALS.items():
        if isinstance(data_type, kind):
            return write(value, data_type)
    raise CONDITION_WITHOUT_SQL(what=f"a literal of type {data_type.simpleString()}")


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _decimal(value: Decimal) -> str:
    """With the digits that it has: the type that pyspark gives it may have fewer."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale)
    return f"CAST('{value:f}' AS decimal({precision},{scale}))"


def _temporal(word: str) -> Callable[[Any, DataType], str]:
    def write(value: Any, data_type: DataType) -> str:
        # Connect keeps days and microseconds; `fromInternal` gives local time, which has no zone in its text.
        local = data_type.fromInternal(value) if isinstance(value, int) else value
        if isinstance(local, datetime.datetime) and isinstance(data_type, TimestampType):
            utc = datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
            local = utc + datetime.timedelta(microseconds=value)
        return (
            f"{word} '{local.isoformat(' ') if isinstance(local, datetime.datetime) else local.isoformat()}'"
        )

    return write


_LITERALS: dict[type[DataType] | tuple[type[DataType], ...], Callable[[Any, Any], str]] = {
    BooleanType: lambda value, _: "true" if value else "false",
    ByteType: lambda value, _: f"{value}Y",
    ShortType: lambda value, _: f"{value}S",
    IntegerType: lambda value, _: str(value),
    LongType: lambda value, _: f"{value}L",
    FloatType: lambda value, _: f"CAST('{value!r}' AS FLOAT)",
    DoubleType: lambda value, _: f"CAST('{value!r}' AS DOUBLE)",
    DecimalType: lambda value, _: _decimal(value),
    StringType: lambda value, _: _string(value),
    DateType: _temporal("DATE"),
    TimestampType: _temporal("TIMESTAMP"),
    TimestampNTZType: _temporal("TIMESTAMP_NTZ"),
}
_WRITERS: dict[str, Callable[[Any], str]] = {
    "ColumnReference": lambda node: str(node._unparsed_identifier),
    "LiteralExpression": _literal,
    "SQLExpression": lambda node: f"({node._expr})",
    "UnresolvedFunction": _function,
    "CastExpression": _cast,
}
