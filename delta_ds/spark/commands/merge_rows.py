"""The join of a merge: which clause applies to a row, and what the row becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.row_changes.candidates import Files
from delta_ds.kernel.commands.row_changes.plan import SpecialColumns
from delta_ds.kernel.commands.row_changes.task import (
    ACTION,
    BEFORE,
    COPY,
    DELETE,
    INSERT,
    ROW_ID,
    ROW_VERSION,
    UPDATE,
)
from delta_ds.kernel.schema.types import StructField
from delta_ds.spark.commands.changing import Change
from delta_ds.spark.commands.merge_clauses import MergePlan, ResolvedClause
from delta_ds.spark.commands.merge_source import SOURCE
from delta_ds.spark.commands.scopes import Scope
from delta_ds.spark.commands.store_casts import StoreCast
from delta_ds.spark.commands.target_source import FILE, HIDDEN, ROW
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
        chosen = F.lit(NONE)
        for number, clause in reversed(list(enumerate(self.plan.clauses))):
            applies = kinds[clause.when]
            if clause.condition is not None:
                applies = applies & F.coalesce(clause.condition.column, F.lit(False))
            chosen = F.when(applies, F.lit(number)).otherwise(chosen)
        return frame.select("*", chosen.alias(CLAUSE))


def rewritten_rows(
    sides: Sides,
    change: Change,
    special: SpecialColumns,
    touched: Files | None,
    *,
    inserts_only: bool,
    by_source: bool,
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
    """
    from pyspark.sql import functions as F

    inserts = any(clause.do == "insert" for clause in sides.plan.clauses)
    marks = change.plan.marks_rows
    if inserts_only:
        how = "left"
    elif marks and not by_source:
        how = "left" if inserts else "inner"
    else:
        how = "full" if inserts else "right"
    frame = sides.joined(how)
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
    return _Values(sides, change, special, frame.where(kept), keeps=keeps).frame().drop(CLAUSE)


def marked_rows(sides: Sides, change: Change, special: SpecialColumns) -> DataFrame:
    """What becomes of the rows of the source, where rows of the table are only marked, in one join.

    Returns
    -------
    DataFrame
        As of `rewritten_rows`, with `CLAUSE`, `FILE` and `ROW` (null for a row that matches none of the table), and
        with rows that no clause changes.
    """
    inserts = any(clause.do == "insert" for clause in sides.plan.clauses)
    frame = sides.joined("left" if inserts else "inner")
    return _Values(sides, change, special, frame, keeps=False).frame(frame[FILE], frame[ROW])


def written_rows(sides: Sides, change: Change, marked: DataFrame) -> DataFrame:
    """Those of `marked_rows` that are written."""
    rows = marked.where((marked[CLAUSE] != NONE) & ~_gone(sides, change, marked))
    return rows.drop(CLAUSE, FILE, ROW)


def _gone(sides: Sides, change: Change, frame: DataFrame) -> Column:
    """Whether a row is deleted, and that need not be written down."""
    from pyspark.sql import functions as F

    deletes = [n for n, clause in enumerate(sides.plan.clauses) if clause.do == "delete"]
    if change.plan.records_changes or not deletes:
        return F.lit(False)
    return frame[CLAUSE].isin(deletes)


class _Values:
    """What the rows of the join become."""

    def __init__(
        self, sides: Sides, change: Change, special: SpecialColumns, frame: DataFrame, *, keeps: bool
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
        """The rows with their values, and in `CLAUSE` what changes them; with more columns of the join."""
        fields = list(self._plan.schema)
        computed = {g.column for g in self._change.plan.write.rows.generated}
        columns = [
            self._value(n, field).alias(field.name)
            for n, field in enumerate(fields)
            if field.name not in computed
        ]
        hidden = [self._frame[CLAUSE], self._action(), *self._hidden(), *more]
        return self._with_generated(self._frame.select(*columns, *hidden), computed)

    def _value(self, n: int, field: StructField) -> Column:
        from pyspark.sql import functions as F

        given: list[tuple[int, Column]] = []
        for number, clause in enumerate(self._plan.clauses):
            if clause.values is not None:
                found = clause.values[n]
                given.append((number, self._found_by_table(field, clause) if found is None else found))
        if not self._keeps and given and not self._change.target.is_connect:
            from delta_ds.spark.native.resolution import same_column

            if same_column(self._change.target.spark, [value for _, value in given]):
                return given[0][1]
        value = self._plan.carried[n] if self._keeps else StoreCast(self._table, True).null(field.type)
        for number, new in reversed(given):
            value = F.when(self._frame[CLAUSE] == number, new).otherwise(value)
        return value

    def _found_by_table(self, field: StructField, clause: ResolvedClause) -> Column:
        """The value of a column that a clause does not give."""
        cast = StoreCast(self._table, True)
        if field.name not in self._special.defaults or clause.do != "insert":
            # Generated and identity values come later.
            return cast.null(field.type)
        scope = Scope(self._sides.source, self._table, "MERGE")
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
            value = Scope(found, self._table, "MERGE").resolve(text, "generated column")
            made = StoreCast(self._table, True).cast(value.column, value.type, field.type, name)
            column = F.when(found[CLAUSE].isin(missing), made).otherwise(found[quoted(name)])
            found = found.withColumn(quoted(name), column)
        return found

    def _action(self) -> Column:
        from pyspark.sql import functions as F

        action = F.lit(COPY)
        for number, clause in enumerate(self._plan.clauses):
            action = F.when(self._frame[CLAUSE] == number, F.lit(_CODES[clause.do])).otherwise(action)
        return action.cast("tinyint").alias(ACTION)

    def _hidden(self) -> Sequence[Column]:
        """Row ids, and the rows as they were."""
        from pyspark.sql import functions as F

        plan, frame = self._change.plan, self._frame
        columns: list[Column] = []
        if plan.tracked:
            same = F.when(frame[CLAUSE] == NONE, frame[ROW_VERSION])
            columns += [frame[ROW_ID].alias(ROW_ID), same.alias(ROW_VERSION)]
        if plan.records_changes:
            columns += [value.alias(f"{BEFORE}{n}") for n, value in enumerate(self._plan.carried)]
        return columns
