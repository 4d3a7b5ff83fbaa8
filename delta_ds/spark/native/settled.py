"""Fix what depends on the moment or the frame in a command's expressions: current time, user, column ids.

Spark puts the values of `current_timestamp()` and its like into each query by itself, when it optimises it. A command
of two queries would then have two times of day, and a row that a condition takes in the one and not in the other
would be lost, or be there twice. So a command asks once, and puts the answers into the expressions that it resolves.

Columns of `DeltaTable.toDF()` name their frame by ids; in a command they stand for the columns of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_ds.conditions.dml import AMBIGUOUS_REFERENCE_TO_SIDES
from delta_ds.spark.native.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
# All that Spark calls "current", under every name that makes another node of the tree.
_CALLS = [
    "current_timestamp()", "now()", "current_date()", "localtimestamp()",
    "current_time()", *(f"current_time({digits})" for digits in range(7)),
    "current_user()", "user()", "session_user()",
    "current_catalog()", "current_database()", "current_path()", "current_timezone()",
]  # fmt: skip
# Those of them that a session's Spark has, where these are not all.
_known: WeakKeyDictionary[SparkSession, list[str]] = WeakKeyDictionary()


class Settled:
    """The current time, user and their like, as of when this is made.

    Parameters
    ----------
    rows
        The table as the command sees it.
    given
        Frames of the table that users have, and may take columns of.
    """

    def __init__(self, rows: DataFrame, given: Iterable[DataFrame] = ()) -> None:
        spark = rows.sparkSession
        self._rows, self._given = rows, given
        self._jvm = jvm = Jvm.of(spark)
        optimizer = jvm.jvm.org.apache.spark.sql.catalyst.optimizer
        catalogs = spark._jsparkSession.sessionState().catalogManager()
        self._rules = [
            jvm.module(f"{_OPTIMIZER}.ComputeCurrentTime$"),
            optimizer.ReplaceCurrentLike(catalogs),
            jvm.module(f"{_OPTIMIZER}.SpecialDatetimeValues$"),
        ]
        asked = self._asked(_known.get(spark, _CALLS))
        if asked is None:
            _known[spark] = [call for call in _CALLS if self._asked([call]) is not None]
            asked = self._asked(_known[spark])
        answered = self._by_rules(asked)
        # A map is a partial function: what it does not hold stays as it is.
        answers = jvm.module("scala.collection.immutable.Map$").empty()
        for at in range(asked.projectList().size()):
            question, answer = (plan.projectList().apply(at).child() for plan in (asked, answered))
            answers = answers.updated(question, answer)
        self._answers = answers

    def __call__(self, projection: Any) -> Any:
        """A resolved projection with these values in its expressions, subqueries included.

        Returns
        -------
        py4j.java_gateway.JavaObject
            Its expressions are what counts: it stands on nothing.
        """
        nothing = self._jvm.jvm.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation()
        alone = projection.withNewChildren(self._jvm.seq([nothing]))
        return self._by_rules(alone.transformAllExpressionsWithSubqueries(self._answers))

    def _asked(self, calls: list[str]) -> Any:
        """A projection of such calls; None where this Spark or session does not have one of them."""
        from pyspark.errors import PySparkException

        try:
            return self._jvm.logical_plan(self._jvm.spark.range(1).selectExpr(*calls))
        except PySparkException:
            return None

    def columns(self, expression: Column, frame: DataFrame) -> Column:
        """An expression of a user in which columns of frames of the table are those of the command's.

        Parameters
        ----------
        expression
            Not resolved yet, but for such columns.
        frame
            What it will be resolved on.

        Raises
        ------
        SchemaError
            `AMBIGUOUS_REFERENCE`: it names a column that the source of a merge has too, since it was made of the table.
        """
        # By the session: `ExpressionUtils` wraps what is not resolved, and shows nothing of it.
        tree = self._jvm.spark._jsparkSession.expression(expression._jc)
        named = [leaf for leaf in _items(tree.collectLeaves()) if leaf.nodeName() == "AttributeReference"]
        if not named:
            return expression
        there = {int(a.exprId().id()) for a in self._output(frame)}
        renamed = self._jvm.module("scala.collection.immutable.Map$").empty()
        for leaf in named:
            own = self._own.get(int(leaf.exprId().id()))
            if own is None or int(own.exprId().id()) not in there:
                continue
            if int(leaf.exprId().id()) in there:
                raise AMBIGUOUS_REFERENCE_TO_SIDES(name=str(leaf.name()))
            renamed = renamed.updated(leaf, own)
        return self._jvm.column(tree.transformDown(renamed)) if renamed.nonEmpty() else expression

    @cached_property
    def _own(self) -> dict[int, Any]:
        """The command's columns by the ids that those of the same name and type have in frames of users."""
        own = {(str(a.name()), str(a.dataType().json())): a for a in self._output(self._rows)}
        known = {}
        for frame in self._given:
            for a in self._output(frame):
                found = own.get((str(a.name()), str(a.dataType().json())))
                if found is not None:
                    known[int(a.exprId().id())] = found
        return known

    def _output(self, frame: DataFrame) -> Iterator[Any]:
        return _items(self._jvm.logical_plan(frame).output())

    def _by_rules(self, plan: Any) -> Any:
        for rule in self._rules:
            plan = rule.apply(plan)
        return plan


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(at) for at in range(sequence.size()))
