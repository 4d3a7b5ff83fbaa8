"""Resolve users' expressions by Spark once, so that they mean the same wherever, and whenever, they are evaluated.

A resolved expression names its columns by id. So it can be evaluated in any frame that has these columns, also where
another column has the same name, as in the join of a MERGE. Columns of `DeltaTable.toDF()` name their frame by ids; in
a command they stand for the columns of the table.

Spark puts the values of `current_timestamp()` and its like into each query by itself, when it optimises it. A command
of two queries would then have two times of day, and a row that a condition takes in the one and not in the other
would be lost, or be there twice. So a command asks once, and puts the answers into the expressions that it resolves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.conditions.dml import AMBIGUOUS_REFERENCE_TO_SIDES
from delta_ds.records import dataclass
from delta_ds.spark.engines.classic.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue


@dataclass(frozen=True)
class Expression:
    """A resolved expression and what Spark knows about it.

    Attributes
    ----------
    column
        To be used in every frame that has the columns of the one it was resolved in.
    text
        As Spark shows it in plans, with the ids of columns.
    deterministic
        Whether it is the same each time.
    subquery
        Whether it holds one.
    """

    column: Column
    text: str
    deterministic: bool
    subquery: bool


def resolve(
    frame: DataFrame, selected: DataFrame, context: ExpressionContext | None = None
) -> list[Expression] | None:
    """The expressions of a projection.

    Parameters
    ----------
    selected
        A `frame.select(...)` in which every column is an expression with an alias.
    context
        What stands in them for the time and its like; None: each query finds that anew.

    Returns
    -------
    list of Expression or None
        None: one of them cannot be computed row by row (an aggregate, a window function, a generator).
    """
    jvm = Jvm.of(frame.sparkSession)
    plan = jvm.logical_plan(selected)
    if plan.nodeName() != "Project" or not plan.child().fastEquals(jvm.logical_plan(frame)):
        return None
    subqueries = jvm.module("org.apache.spark.sql.catalyst.expressions.SubqueryExpression$")
    projected = (context(plan) if context else plan).projectList()
    resolved = []
    for at in range(projected.size()):
        expression = projected.apply(at).child()
        subquery = bool(subqueries.hasSubquery(expression))
        resolved.append(
            Expression(
                jvm.column(expression),
                _plan_text(jvm, expression),
                bool(expression.deterministic()),
                subquery,
            )
        )
    return resolved


def attributes(frame: DataFrame) -> list[Column]:
    """The columns of a frame in order, each by its id, however they are called."""
    jvm = Jvm.of(frame.sparkSession)
    output = jvm.logical_plan(frame).output()
    return [jvm.column(output.apply(at)) for at in range(output.size())]


def column_ids(frame: DataFrame) -> list[int]:
    """The ids of the columns of a frame, in order, as trees of expressions name them."""
    output = Jvm.of(frame.sparkSession).logical_plan(frame).output()
    return [int(a.exprId().id()) for a in _items(output)]


def same_output(one: DataFrame, other: DataFrame) -> bool:
    """Whether two frames have the same columns by their ids, in the same order."""
    jvm = Jvm.of(one.sparkSession)
    outputs = [jvm.logical_plan(frame).output() for frame in (one, other)]
    ids = [[output.apply(at).exprId() for at in range(output.size())] for output in outputs]
    return len(ids[0]) == len(ids[1]) and all(a.equals(b) for a, b in zip(*ids, strict=True))


def under_ids(frame: DataFrame, ids: DataFrame) -> DataFrame:
    """The rows of a frame under the ids that columns of the same names have in another one.

    What was resolved on the other frame means the same on this one.
    """
    jvm = Jvm.of(frame.sparkSession)
    plan, columns = jvm.logical_plan(frame), jvm.logical_plan(ids).output()
    catalyst = jvm.jvm.org.apache.spark.sql.catalyst
    id_by_name = {str(columns.apply(at).name()): columns.apply(at).exprId() for at in range(columns.size())}
    named = []
    for at in range(plan.output().size()):
        column = plan.output().apply(at)
        name, metadata = str(column.name()), jvm.some(column.metadata())
        ident = id_by_name.get(name)
        if ident is not None:
            column = catalyst.expressions.Alias(column, name, ident, jvm.seq([]), metadata, jvm.seq([]))
        named.append(column)
    return jvm.data_frame(catalyst.plans.logical.Project(jvm.seq(named), plan))


def joins(joined: DataFrame, left: DataFrame, right: DataFrame) -> bool:
    """Whether a frame has the columns of two others, by ids that tell the two apart."""
    jvm = Jvm.of(joined.sparkSession)
    sides = [jvm.logical_plan(frame).outputSet() for frame in (left, right)]
    whole = jvm.logical_plan(joined).outputSet()
    return bool(sides[0].intersect(sides[1]).isEmpty()) and all(side.subsetOf(whole) for side in sides)


def _plan_text(jvm: Jvm, expression: JavaObject) -> str:
    return str(expression.simpleString(int(jvm.spark.conf.get("spark.sql.debug.maxToStringFields") or 25)))


def same_column(spark: SparkSession, values: Sequence[Column]) -> bool:
    """Whether all of some resolved expressions are one and the same column, and nothing else."""
    jvm = Jvm.of(spark)
    expressions = [jvm.expression(value) for value in values]
    return all(f.nodeName() == "AttributeReference" and f.semanticEquals(expressions[0]) for f in expressions)


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


class ExpressionContext:
    """The current time, user and their like, as of when this is made.

    Parameters
    ----------
    rows
        The table as the command sees it.
    given
        Frames of the table that users have, and may take columns of; for those of a client the qualifier of such
        columns.
    """

    def __init__(self, rows: DataFrame, given: Iterable[DataFrame | str] = ()) -> None:
        spark = rows.sparkSession
        self._rows = rows
        self._given = [frame for frame in given if not isinstance(frame, str)]
        self._qualifiers = {word for word in given if isinstance(word, str)}
        self._jvm = jvm = Jvm.of(spark)
        optimizer = jvm.jvm.org.apache.spark.sql.catalyst.optimizer
        catalogs = spark._jsparkSession.sessionState().catalogManager()
        self._rules = [
            jvm.module(f"{_OPTIMIZER}.ComputeCurrentTime$"),
            optimizer.ReplaceCurrentLike(catalogs),
            jvm.module(f"{_OPTIMIZER}.SpecialDatetimeValues$"),
        ]
        asked = self._ask(_known.get(spark, _CALLS))
        if asked is None:
            _known[spark] = [call for call in _CALLS if self._ask([call]) is not None]
            asked = self._ask(_known[spark])
        answered = self._by_rules(asked)
        # A map is a partial function: what it does not hold stays as it is.
        answers = jvm.module("scala.collection.immutable.Map$").empty()
        for at in range(asked.projectList().size()):
            question, answer = (plan.projectList().apply(at).child() for plan in (asked, answered))
            answers = answers.updated(question, answer)
        self._answers = answers

    def __call__(self, projection: JavaObject) -> JavaValue:
        """A resolved projection with these values in its expressions, subqueries included.

        Returns
        -------
        py4j.java_gateway.JavaObject
            Its expressions are what counts: it stands on nothing.
        """
        nothing = self._jvm.jvm.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation()
        alone = projection.withNewChildren(self._jvm.seq([nothing]))
        return self._by_rules(alone.transformAllExpressionsWithSubqueries(self._answers))

    def _ask(self, calls: list[str]) -> JavaValue:
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
            Not resolved yet, but for such columns; those of a client's frames are not resolved either.
        frame
            What it will be resolved on.

        Raises
        ------
        SchemaError
            `AMBIGUOUS_REFERENCE`: it names a column that the source of a merge has too, since it was made of the table.
        """
        # By the session: `ExpressionUtils` wraps what is not resolved, and shows nothing of it.
        tree = self._jvm.spark._jsparkSession.expression(expression._jc)
        leaves = list(_items(tree.collectLeaves()))
        named = [leaf for leaf in leaves if leaf.nodeName() == "AttributeReference"]
        of_client = [leaf for leaf in leaves if self._is_of_client(leaf)]
        if not named and not of_client:
            return expression
        there = {int(a.exprId().id()) for a in self._output(frame)}
        renamed = self._jvm.module("scala.collection.immutable.Map$").empty()
        for leaf in of_client:
            own = self._found(leaf)
            if own is not None and there.issuperset(
                int(a.exprId().id()) for a in _items(own.references().toSeq())
            ):
                renamed = renamed.updated(leaf, own)
        for leaf in named:
            own = self._own.get(int(leaf.exprId().id()))
            if own is None or int(own.exprId().id()) not in there:
                continue
            if int(leaf.exprId().id()) in there:
                raise AMBIGUOUS_REFERENCE_TO_SIDES(name=str(leaf.name()))
            renamed = renamed.updated(leaf, own)
        return self._jvm.column(tree.transformDown(renamed)) if renamed.nonEmpty() else expression

    def _is_of_client(self, leaf: JavaObject) -> bool:
        """Whether an expression is a column of a client's frame of the table."""
        if not self._qualifiers or leaf.nodeName() != "UnresolvedAttribute":
            return False
        return str(leaf.nameParts().apply(0)) in self._qualifiers

    def _found(self, leaf: JavaObject) -> JavaValue:
        """The command's column, or field of one, that a client's column means; None: there is none."""
        resolver = self._jvm.spark._jsparkSession.sessionState().conf().resolver()
        found = self._jvm.logical_plan(self._rows).resolve(leaf.nameParts().drop(1), resolver)
        if not found.isDefined():
            return None
        own = found.get()
        return own.child() if own.nodeName() == "Alias" else own  # a field has a name of its own

    @cached_property
    def _own(self) -> dict[int, JavaObject]:
        """The command's columns by the ids that those of the same name and type have in frames of users."""
        own = {(str(a.name()), str(a.dataType().json())): a for a in self._output(self._rows)}
        by_id = {}
        for frame in self._given:
            for a in self._output(frame):
                counterpart = own.get((str(a.name()), str(a.dataType().json())))
                if counterpart is not None:
                    by_id[int(a.exprId().id())] = counterpart
        return by_id

    def _output(self, frame: DataFrame) -> Iterator[JavaObject]:
        return _items(self._jvm.logical_plan(frame).output())

    def _by_rules(self, plan: JavaObject) -> JavaObject:
        for rule in self._rules:
            plan = rule.apply(plan)
        return plan


def _items(sequence: JavaObject) -> Iterator[JavaObject]:
    return (sequence.apply(at) for at in range(sequence.size()))
