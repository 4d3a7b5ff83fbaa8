"""An optimizer rule that answers aggregates over tables from the log.

Nothing below the logical plan sees an aggregate, and Spark has no hook for it that Python could take; but it keeps
a list of additional optimiser rules in every session, and the compiler of its generated code makes a rule of a few
lines of Java (`LogAggregates.java`). Checked on Spark 4.1, 4.2 and 4.3; on another version the compiler finds out.

The rule runs once in the planning of every query with an aggregate. It leaves the JVM only for an aggregate without
grouping straight above one of our relations; whatever fails leaves the plan as it is. Cached data, streams and
plans with any filter, join, limit or sample below the aggregate are not touched.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from delta_ds.spark.native import aggregates
from delta_ds.spark.native.compiler import compile_class
from delta_ds.spark.native.jvm import Jvm, NotNative

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger("delta_ds")
_RULE = "LogAggregates"


class _Answers:
    """`java.util.function.Function` from question to answer."""

    def apply(self, question: str) -> str | None:
        try:
            return aggregates.answer(question)
        except Exception as error:
            # The scan gives the same rows, or the error that the user should see.
            _LOGGER.warning("aggregates_not_answered action=scan reason=%s: %s", type(error).__name__, error)
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
    rule = _probed(jvm)
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
    _probed(Jvm.of(spark))


def is_installed(spark: SparkSession) -> bool:
    """Whether the rule is in the session's optimiser."""
    return any(map(_is_ours, _rules(Jvm.of(spark))))


def _probed(jvm: Jvm) -> Any:
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


def _experimental(jvm: Jvm) -> Any:
    return jvm.spark._jsparkSession.experimental()


def _rules(jvm: Jvm) -> list[Any]:
    found = _experimental(jvm).extraOptimizations()
    return [found.apply(i) for i in range(found.size())]


def _is_ours(rule: Any) -> bool:
    return bool(rule.ruleName() == _RULE)


def _other_rules(jvm: Jvm) -> list[Any]:
    return [rule for rule in _rules(jvm) if not _is_ours(rule)]


def _set_rules(jvm: Jvm, rules: list[Any]) -> None:
    getattr(_experimental(jvm), "extraOptimizations_$eq")(jvm.seq(rules))
