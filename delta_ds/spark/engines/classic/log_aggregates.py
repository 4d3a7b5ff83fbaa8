"""An optimizer rule that answers aggregates over tables from the log.

Nothing below the logical plan sees an aggregate, and Spark has no hook for it that Python could take; but it keeps
a list of additional optimiser rules in every session, and the compiler of its generated code makes a rule of a few
lines of Java (`LogAggregates.java`). Checked on Spark 4.1, 4.2 and 4.3; on another version the compiler finds out.

The rule runs once in the planning of every query with an aggregate. It leaves the JVM only for an aggregate without
grouping straight above one of our relations; whatever fails leaves the plan as it is. Cached data, streams and
plans with any filter, join, limit or sample below the aggregate are not touched. Questions and answers are JSON texts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from delta_ds.events.spark import AGGREGATES_FROM_LOG, AGGREGATES_NOT_ANSWERED
from delta_ds.kernel.files.scan.aggregates import Aggregate, exact_aggregates
from delta_ds.spark.base.kinds.session_kind import answers_jvm
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative, compile_class

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.format.schema.types import DataType, StructType
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue
    from delta_ds.spark.engines.classic.file_index import DeltaFileIndex

_RULE = "LogAggregates"


@answers_jvm
class _Answers:
    """`java.util.function.Function` from question to answer."""

    def apply(self, question: str) -> str | None:
        try:
            return answer(question)
        except Exception as error:
            # The scan gives the same rows, or the error that the user should see.
            AGGREGATES_NOT_ANSWERED.log(reason=error)
            return None

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def install(spark: SparkSession) -> None:
    """Add the rule to a session, behind those that are there; doing so again is harmless.

    Raises
    ------
    NotNative
        A session of Spark Connect, or a Spark for which the rule does not compile or does not run.
    """
    jvm = Jvm.of(spark)
    rule = _probe_rule(jvm)
    _set_rules(jvm, [*_other_rules(jvm), rule])


def uninstall(spark: SparkSession) -> None:
    """Take the rule out of a session; harmless where it is not.

    Raises
    ------
    NotNative
        A session of Spark Connect.
    """
    jvm = Jvm.of(spark)
    _set_rules(jvm, _other_rules(jvm))


def probe(spark: SparkSession) -> None:
    """Find out whether `install` would work, without changing anything.

    Raises
    ------
    NotNative
        As `install`.
    """
    _probe_rule(Jvm.of(spark))


def is_installed(spark: SparkSession) -> bool:
    """Whether the rule is in the session's optimiser."""
    return any(map(_is_ours, _rules(Jvm.of(spark))))


def _probe_rule(jvm: Jvm) -> JavaObject:
    """The rule, after it has left alone a plan with an aggregate that is not ours."""
    from py4j.protocol import Py4JError

    rule = compile_class(jvm.jvm, jvm.gateway, _RULE)
    rule.asking(_Answers())
    try:
        plan = jvm.spark.range(1).groupBy().count()._jdf.queryExecution().optimizedPlan()
        if not rule.apply(plan).fastEquals(plan):
            raise NotNative(f"{_RULE} changes a plan that it should leave alone")
    except Py4JError as error:
        raise NotNative(f"{_RULE} does not run in Spark {jvm.spark.version}: {error}") from error
    return rule


def _experimental(jvm: Jvm) -> JavaValue:
    return jvm.spark._jsparkSession.experimental()


def _rules(jvm: Jvm) -> list[JavaObject]:
    found = _experimental(jvm).extraOptimizations()
    return [found.apply(i) for i in range(found.size())]


def _is_ours(rule: JavaObject) -> bool:
    return bool(rule.ruleName() == _RULE)


def _other_rules(jvm: Jvm) -> list[JavaObject]:
    return [rule for rule in _rules(jvm) if not _is_ours(rule)]


def _set_rules(jvm: Jvm, rules: list[JavaObject]) -> None:
    getattr(_experimental(jvm), "extraOptimizations_$eq")(jvm.seq(rules))


def answer(question: str) -> str | None:
    """Answer a question about all rows of a relation.

    Parameters
    ----------
    question
        `index`: the identity of the relation's file index. `deletions`: whether the plan leaves out deleted rows.
        `aggregates`: list of `function` (count, min, max), `path` (names as the relation has them; empty for rows)
        and `type` (Spark's name of the column's type).

    Returns
    -------
    str or None
        A list of texts, null for SQL's null: integers, decimals and floats as Java reads them, `true` or `false`,
        strings as they are, dates in days and timestamps in microseconds since 1970. None: the scan has to tell.
    """
    asked = json.loads(question)
    index = _index(asked["index"])
    if index is None or not _covers(index, bool(asked["deletions"])):
        return None
    requests = [_request(index, item) for item in asked["aggregates"]]
    if not all(requests):
        return None
    found = exact_aggregates(index.snapshot, [request for request in requests if request is not None])
    if found is None:
        return None
    AGGREGATES_FROM_LOG.log(table=asked["index"])
    return json.dumps([_text(value) for value in found])


def _index(identity: str) -> DeltaFileIndex | None:
    from delta_ds.spark.engines.classic.file_index import DeltaFileIndex

    return DeltaFileIndex.of_identity(identity)


def _covers(index: DeltaFileIndex, without_deleted: bool) -> bool:
    """Whether the plan's rows are the live rows of the version: all files, and no deleted rows."""
    if index.large:
        return False  # it takes the statistics of every file
    return len(index.rows) == index.live.num_rows and (without_deleted or not index.has_deletions)


def _request(index: DeltaFileIndex, item: dict[str, Any]) -> Aggregate | None:
    """The aggregate in the table's own names; None for what is no column of the table."""
    path = tuple(item["path"])
    if not path:
        return Aggregate(item["function"])
    logical = index.columns.logical(path)
    if logical is None or str(_type_of(index.snapshot.schema, logical)) != item["type"]:
        return None
    return Aggregate(item["function"], logical)


def _type_of(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    level: Any = schema
    for name in path:
        field = level.find(name) if hasattr(level, "find") else None
        if field is None:
            return None
        level = field.type
    found: DataType = level
    return found


def _text(value: pa.Scalar) -> str | None:
    import pyarrow as pa

    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_temporal(kind):
        # Python's own dates and times would not hold them all.
        return str(value.value)
    plain = value.as_py()
    if pa.types.is_boolean(kind):
        return "true" if plain else "false"
    if pa.types.is_decimal(kind):
        return format(plain, "f")
    # A float as the double that is equal to it, which Java rounds back to the same float.
    return _float(plain) if pa.types.is_floating(kind) else str(plain)


def _float(value: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))
