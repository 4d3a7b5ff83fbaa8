"""DELETE, UPDATE and MERGE from Spark's parser, run by the commands of `DeltaTable`.

What the statement holds is not resolved yet: expressions and sources are those that users wrote, after parameters and
common table expressions were put in. The commands resolve them, as they do for `DeltaTable`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.catalog import HISTORICAL_VERSION_IS_NO_TARGET
from delta_ds.conditions.dml import ASSIGNED_TWICE, INSERTED_TWICE
from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.sql_grammar.dml_grammar import insert_overwrite, parse_dml
from delta_ds.spark.base.sql_grammar.statements import Insert
from delta_ds.spark.base.sql_grammar.tokens import Parameters, SqlSyntaxError
from delta_ds.spark.base.table_names import without_path
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.classes import static
from delta_ds.spark.session.catalog.tables import OpenTable, opened
from delta_ds.spark.session.conditions import sql_of_resolved
from delta_ds.spark.session.writes.request import (
    INSERT,
    INSERT_BY_NAME,
    INSERT_INTO,
    INSERT_LISTED,
    WRITE_PARTITIONS,
    WRITE_TO,
    Way,
    WriteRequest,
)
from delta_ds.spark.session.writes.request import given as given_text
from delta_ds.spark.session.writes.write import write
from delta_ds.spark.sql.create import create_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject

# --- iNSERT in all forms, `df.writeTo(name)`, and rows for a table that comes to be with them


def insert(spark: SparkSession, statement: JavaObject) -> None:
    """Run a write that Spark has analysed.

    Parameters
    ----------
    statement
        As `Relations.java` gives it: the table, the rows, the condition of what is replaced (null: nothing is), and as
        JSON details (`byName`, `sql`, `listed`, `evolve`, `dynamic`) and options.
    """
    jtable, query, replaced, *texts = statement
    details, options = map(json.loads, texts)
    rows = Jvm.of(spark).data_frame(query)
    given = without_path(options)
    if jtable.getClass().getSimpleName() == "NewTable":
        create_table(spark, jtable.definition(), rows, given)
        jtable.done()
        return
    if details["evolve"]:
        given["mergeSchema"] = "true"
    table = opened(jtable)
    # A statement of whole rows says by its options what it replaces; how partitions are overwritten does not count.
    by_partition = details["dynamic"] and not (
        details["sql"] and (given_text(given, "replaceUsing") or given_text(given, "replaceOn"))
    )
    overwrites = details["dynamic"] or replaced is not None
    request = WriteRequest(
        rows,
        _way(details),
        OVERWRITE if overwrites else APPEND,
        {**given, **table.store, "path": table.path},
        replaced=None if replaced is None else sql_of_resolved(Jvm.of(spark), replaced),
        by_partition=bool(by_partition),
    )
    write(request)


def in_grammar_of_spark(spark: SparkSession, text: str, parameters: Parameters | None) -> str | None:
    """`INSERT ... REPLACE USING` and `REPLACE ON` into a table of ours, in words that every version of Spark reads.

    None: the text is another statement, or one that is wrong, or the table is none of ours; Spark then says it.
    """
    try:
        statement = parse_dml(text, parameters)
    except SqlSyntaxError:
        return None
    if not isinstance(statement, Insert) or not statement.replaces_matches:
        return None
    jvm = Jvm.of(spark)
    if static(jvm, "Names").find(spark._jsparkSession, jvm.seq(list(statement.target)), False) is None:
        return None
    return insert_overwrite(statement)


def _way(details: Mapping[str, Any]) -> Way:
    if details["sql"]:
        if not details["byName"]:
            return INSERT
        return INSERT_LISTED if details["listed"] else INSERT_BY_NAME
    if not details["byName"]:
        return INSERT_INTO
    return WRITE_PARTITIONS if details["dynamic"] else WRITE_TO


# --- dELETE, UPDATE and MERGE from Spark's parser, run by the commands of `DeltaTable`

# The word stands for the column's default, unless a column is called so.
_DEFAULT = "DEFAULT"


def delete(spark: SparkSession, statement: JavaObject) -> DataFrame:
    """Run a DELETE; the number of rows that are gone."""
    plan, jtable, alias = statement
    target = _Target(spark, opened(jtable), plan.table(), alias)
    condition = plan.condition()
    # Compared as what it is: the text of a column called `true` is the same.
    always = target.jvm.jvm.org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral()
    return target.table.delete(None if condition.equals(always) else target.column(condition))


def update(spark: SparkSession, statement: JavaObject) -> DataFrame:
    """Run an UPDATE; the number of rows that have changed."""
    plan, jtable, alias = statement
    target = _Target(spark, opened(jtable), plan.table(), alias)
    condition = plan.condition()
    return target.table.update(
        target.column(condition.get()) if condition.isDefined() else None,
        target.assignments(plan.assignments()),
    )


def merge(spark: SparkSession, statement: JavaObject) -> DataFrame:
    """Run a MERGE; the numbers of rows by what was done with them."""
    plan, jtable, alias = statement
    target = _Target(spark, opened(jtable), plan.targetTable(), alias)
    source = target.jvm.data_frame(plan.sourceTable())
    target.columns += source.columns
    builder = target.table.merge(source, target.column(plan.mergeCondition()))
    if plan.withSchemaEvolution():
        builder = builder.withSchemaEvolution()
    for actions, when in (
        (plan.matchedActions(), "whenMatched"),
        (plan.notMatchedActions(), "whenNotMatched"),
        (plan.notMatchedBySourceActions(), "whenNotMatchedBySource"),
    ):
        for number in range(actions.size()):
            builder = _with_action(target, builder, when, actions.apply(number))
    return builder.execute()


def _with_action(target: _Target, builder: Any, when: str, action: Any) -> Any:
    kind = action.getClass().getSimpleName().removesuffix("Action")
    condition = target.column(action.condition().get()) if action.condition().isDefined() else None
    if kind.endswith("Star"):
        return getattr(builder, f"{when}{kind.removesuffix('Star')}All")(condition)
    if kind == "Delete":
        return getattr(builder, f"{when}Delete")(condition)
    values = target.assignments(action.assignments(), inserts=kind == "Insert")
    if kind == "Insert":
        return getattr(builder, f"{when}Insert")(condition, values=values)
    return getattr(builder, f"{when}Update")(condition, set=values)


class _Target:
    """The target of a statement, and the expressions that the statement has about it."""

    def __init__(
        self, spark: SparkSession, table: OpenTable, relation: JavaObject, alias: str | None
    ) -> None:
        if table.is_historical:
            raise HISTORICAL_VERSION_IS_NO_TARGET(table=table.name)
        self.jvm = Jvm.of(spark)
        self._qualifier: list[str] = []
        if alias is None:
            parts = relation.multipartIdentifier()
            if "/" not in parts.last():
                alias = parts.last()
                self._qualifier = _names(static(self.jvm, "Names").qualifier(spark._jsparkSession, parts))
        target = DeltaTable.forPath(spark, table.path, table.store)
        self.table = target if alias is None else target.alias(alias)
        self._alias = alias
        self._where = table.name
        self.columns = list(table.snapshot.schema.names)

    def column(self, expression: JavaObject) -> Column:
        """An expression of the statement, in which columns may have the table's full name in front."""
        if self._qualifier:
            expression = static(self.jvm, "Qualifiers").shortened(
                expression, self.jvm.seq(self._qualifier), self._alias
            )
        return self.jvm.column(expression)

    def assignments(self, assignments: JavaObject, *, inserts: bool = False) -> dict[str, str | Column]:
        """What columns are set to, by their names, or the values of a row that is inserted."""
        found: dict[str, str | Column] = {}
        for number in range(assignments.size()):
            assignment = assignments.apply(number)
            value = assignment.value()
            name = ".".join(map(quoted, self._short(_names(assignment.key().nameParts()))))
            if name.lower() in {known.lower() for known in found}:
                twice = INSERTED_TWICE if inserts else ASSIGNED_TWICE
                raise twice(table=self._where, column=name)
            found[name] = _DEFAULT if self._is_default(value) else self.column(value)
        return found

    def _is_default(self, value: JavaObject) -> bool:
        return value.sql().upper() == _DEFAULT and _DEFAULT not in {name.upper() for name in self.columns}

    def _short(self, names: list[str]) -> list[str]:
        """The name of a column without the schema and catalog of its table."""
        if not self._qualifier or self._alias is None:
            return names
        for start in range(len(self._qualifier)):
            full = [*self._qualifier[start:], self._alias]
            if len(names) > len(full) and [n.lower() for n in names[: len(full)]] == [
                n.lower() for n in full
            ]:
                return names[len(full) - 1 :]
        return names


def _names(parts: JavaObject) -> list[str]:
    return [parts.apply(at) for at in range(parts.size())]
