"""The join of a MERGE: the clause that applies to a row, and the row it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.dml.candidates import CandidateFiles
from delta_ds.kernel.commands.dml.plan import SpecialColumns
from delta_ds.kernel.commands.dml.task import (
    ACTION,
    BEFORE,
    COPY,
    DELETE,
    INSERT,
    ROW_ID,
    ROW_VERSION,
    UPDATE,
)
from delta_ds.kernel.operations import MERGE
from delta_ds.kernel.schema.types import StructField
from delta_ds.spark.commands.dml_command import DmlExecution
from delta_ds.spark.commands.file_scan_source import FILE, HIDDEN, ROW
from delta_ds.spark.commands.merge.plan import MergePlan, ResolvedClause
from delta_ds.spark.commands.merge.sides import SOURCE
from delta_ds.spark.commands.resolution.expression_resolution import Scope
from delta_ds.spark.commands.resolution.store_casts import StoreCast
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLAUSE = f"{HIDDEN}clause"
# Of a row that no clause changes: it stays as it is, or, being one of the source, it goes nowhere.
NONE = -1
_CODES = {"update": UPDATE, "insert": INSERT, "delete": DELETE}


@dataclass(frozen=True)
class Sides:
    """The two sides of a merge.

    Attributes
    ----------
    plan
        What the clauses mean for these very frames.
    source
        With `SOURCE`, true in every row.
    target
        With `FILE` and `ROW`.
    """

    plan: MergePlan
    source: DataFrame
    target: DataFrame

    def joined(self, how: str) -> DataFrame:
        """The join by the search condition, and in `CLAUSE` (int) which clause applies."""
        from pyspark.sql import functions as F

        frame = self.source.join(self.target, self.plan.on.column, how)
        matched = frame[SOURCE].isNotNull() & frame[FILE].isNotNull()
        kinds = {
            "matched": matched,
            "not_matched": frame[FILE].isNull(),
            "not_matched_by_source": frame[SOURCE].isNull(),
        }
        branches = []
        for number, clause in enumerate(self.plan.clauses):
            applies = kinds[clause.when]
            if clause.condition is not None:
                applies = applies & F.coalesce(clause.condition.column, F.lit(False))
            branches.append((applies, F.lit(number)))
        return frame.select("*", _case(branches, F.lit(NONE)).alias(CLAUSE))


def _case(branches: Sequence[tuple[Column, Column]], otherwise: Column) -> Column:
    """The value of the first branch whose condition holds: one flat CASE, however many there are."""
    from pyspark.sql import functions as F

    if not branches:
        return otherwise
    (condition, value), *others = branches
    case = F.when(condition, value)
    for condition, value in others:
        case = case.when(condition, value)
    return case.otherwise(otherwise)


def rewritten_rows(
    sides: Sides,
    change: DmlExecution,
    special: SpecialColumns,
    touched: CandidateFiles | None,
    *,
    inserts_only: bool,
    by_source: bool,
    repeated: bool,
) -> DataFrame:
    """The rows that a merge writes once it is known where rows change, see `write_changed_rows`.

    Parameters
    ----------
    sides
        The source, and the files of the table that have to be looked at.
    change
        How rows are written.
    special
        Columns that the table finds values for.
    touched
        Those of the files that rows change in; None: all.
    inserts_only
        Whether no row of the table changes.
    by_source
        Whether rows that the source does not match may change.
    repeated
        Whether several rows of the source match a row that is deleted.
    """
    from pyspark.sql import functions as F

    marks = change.plan.uses_deletion_vectors
    frame = sides.joined("left" if inserts_only else _join(sides, marks, by_source))
    stays = frame[FILE].isNotNull() if not inserts_only else F.lit(False)
    if touched is not None and not inserts_only:
        stays = frame[FILE].isin(touched.numbers.to_pylist())
    changes = frame[CLAUSE] != NONE
    if touched is not None or inserts_only:
        changes = changes & (frame[FILE].isNull() | stays)
    gone = _gone(sides, change, frame)
    changes, stays = changes & ~gone, stays & ~gone
    keeps = not (marks or inserts_only)
    kept = changes | stays if keeps else changes
    values = _Values(sides, change, special, frame.where(kept), keeps=keeps)
    return _as_written(values.frame(), change, repeated)


def all_rows(sides: Sides, change: DmlExecution, special: SpecialColumns, *, by_source: bool) -> DataFrame:
    """What becomes of all rows of the join, before it is known where rows change.

    Returns
    -------
    DataFrame
        As of `rewritten_rows`, with `CLAUSE`, and `FILE` and `ROW`, null for a row that matches none of the table,
        and `SOURCE`, null for a row that the source does not match; and with rows that no clause changes.
    """
    marks = change.plan.uses_deletion_vectors
    frame = sides.joined(_join(sides, marks, by_source))
    return _Values(sides, change, special, frame, keeps=not marks).frame(frame[SOURCE])


def written_rows(
    sides: Sides, change: DmlExecution, rows: DataFrame, touched: CandidateFiles, *, repeated: bool
) -> DataFrame:
    """Those of `all_rows` that are written; arguments as of `rewritten_rows`."""
    wanted = rows[CLAUSE] != NONE
    if not change.plan.uses_deletion_vectors:
        wanted = wanted | rows[FILE].isin(touched.numbers.to_pylist())
    return _as_written(rows.where(wanted & ~_gone(sides, change, rows)).drop(SOURCE), change, repeated)


def _join(sides: Sides, marks: bool, by_source: bool) -> str:
    """The join in which all rows are that may be written; the source is on its left."""
    inserts = any(clause.inserts for clause in sides.plan.clauses)
    if marks and not by_source:
        return "left" if inserts else "inner"
    return "full" if inserts else "right"


def _as_written(rows: DataFrame, change: DmlExecution, repeated: bool) -> DataFrame:
    """The rows without positions; each deleted row once, however often the source matches it.

    Source: delta-spark, `ClassicMergeExecutor.deduplicateCDFDeletes`.
    """
    if repeated and change.plan.records_changes:
        from pyspark.sql import functions as F

        gone = rows[ACTION] == F.lit(DELETE)
        rows = rows.where(~gone).union(rows.where(gone).dropDuplicates([FILE, ROW]))
    return rows.drop(CLAUSE, FILE, ROW)


def _gone(sides: Sides, change: DmlExecution, frame: DataFrame) -> Column:
    """Whether a row is deleted and need not be recorded as a change."""
    from pyspark.sql import functions as F

    deletes = [n for n, clause in enumerate(sides.plan.clauses) if clause.deletes]
    if change.plan.records_changes or not deletes:
        return F.lit(False)
    return frame[CLAUSE].isin(deletes)


class _Values:
    """The values of the rows of the join after the merge."""

    def __init__(
        self, sides: Sides, change: DmlExecution, special: SpecialColumns, frame: DataFrame, *, keeps: bool
    ) -> None:
        # Where rows that no clause changes are not kept, the table's columns need not be read for their sake.
        self._keeps = keeps
        self._plan = sides.plan
        self._sides = sides
        self._change = change
        self._special = special
        self._frame = frame
        self._table = change.target.handle.where

    def frame(self, *more: Column) -> DataFrame:
        """The rows with their values and places, in `CLAUSE` what changes them, and more columns of the join."""
        fields = list(self._plan.schema)
        computed = {g.column for g in self._change.plan.write.rows.generated}
        columns = [
            self._value(n, field).alias(field.name)
            for n, field in enumerate(fields)
            if field.name not in computed
        ]
        places = [self._frame[name] for name in (CLAUSE, FILE, ROW)]
        hidden = [*places, self._action(), *self._hidden_columns(), *more]
        return self._with_generated(self._frame.select(*columns, *hidden), computed)

    def _value(self, n: int, field: StructField) -> Column:
        given: list[tuple[int, Column]] = []
        for number, clause in enumerate(self._plan.clauses):
            if clause.values is not None:
                found = clause.values[n]
                given.append((number, self._found_by_table(field, clause) if found is None else found))
        if not self._keeps and given and not self._change.target.is_connect:
            from delta_ds.spark.native.resolution import same_column

            if same_column(self._change.target.spark, [value for _, value in given]):
                return given[0][1]
        unchanged = self._plan.carried[n] if self._keeps else StoreCast(self._table, True).null(field.type)
        chosen = self._frame[CLAUSE]
        return _case([(chosen == number, value) for number, value in given], unchanged)

    def _found_by_table(self, field: StructField, clause: ResolvedClause) -> Column:
        """The value of a column that a clause does not assign: generated, default or identity."""
        cast = StoreCast(self._table, True)
        if field.name not in self._special.defaults or not clause.inserts:
            # Generated and identity values come later.
            return cast.null(field.type)
        scope = Scope(self._sides.source, self._table, MERGE.name, context=self._change.target.context)
        default = scope.resolve(self._special.defaults[field.name], "default")
        return cast.cast(default.column, default.type, field.type, field.name)

    def _with_generated(self, found: DataFrame, computed: set[str]) -> DataFrame:
        """Compute generated columns that some clauses give and others do not."""
        from pyspark.sql import functions as F

        for name, text in self._special.generated.items():
            missing = [
                n
                for n, clause in enumerate(self._plan.clauses)
                if clause.values is not None and name not in clause.assigned
            ]
            if name in computed or not missing:
                continue
            field = self._plan.schema.find(name)
            assert field is not None
            scope = Scope(found, self._table, MERGE.name, context=self._change.target.context)
            value = scope.resolve(text, "generated column")
            made = StoreCast(self._table, True).cast(value.column, value.type, field.type, name)
            column = F.when(found[CLAUSE].isin(missing), made).otherwise(found[quoted(name)])
            found = found.withColumn(name, column)
        return found

    def _action(self) -> Column:
        from pyspark.sql import functions as F

        numbers: dict[str, list[int]] = {}
        for number, clause in enumerate(self._plan.clauses):
            numbers.setdefault(clause.do, []).append(number)
        found = self._frame[CLAUSE]
        branches = [(found.isin(those), F.lit(_CODES[do])) for do, those in numbers.items()]
        return _case(branches, F.lit(COPY)).cast("tinyint").alias(ACTION)

    def _hidden_columns(self) -> Sequence[Column]:
        """The hidden columns: row ids, and the rows as they were."""
        from pyspark.sql import functions as F

        plan, frame = self._change.plan, self._frame
        columns: list[Column] = []
        if plan.tracked:
            same = F.when(frame[CLAUSE] == NONE, frame[ROW_VERSION])
            columns += [frame[ROW_ID].alias(ROW_ID), same.alias(ROW_VERSION)]
        if plan.records_changes:
            columns += [value.alias(f"{BEFORE}{n}") for n, value in enumerate(self._plan.carried)]
        return columns
