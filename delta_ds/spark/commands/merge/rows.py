"""The join of a MERGE: the clause that applies to a row, and the row it gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.dml.candidates import CandidateFiles
from delta_ds.kernel.commands.dml.plan import SpecialColumns
from delta_ds.kernel.commands.dml.task import (
    ACTION,
    BEFORE,
    CLAUSE,
    COPY,
    DELETE,
    FILE,
    INSERT,
    NONE,
    ROW,
    ROW_ID,
    ROW_VERSION,
    SOURCE,
    UPDATE,
)
from delta_ds.kernel.expressions.coercion import INTEGRAL
from delta_ds.kernel.operations import MERGE
from delta_ds.kernel.schema.types import DATE, DataType, DecimalType, StructField
from delta_ds.records import dataclass
from delta_ds.spark.commands.dml_command import DmlExecution
from delta_ds.spark.commands.merge.plan import MergePlan, ResolvedClause
from delta_ds.spark.commands.resolution.expression_resolution import Scope
from delta_ds.spark.commands.resolution.store_casts import StoreCast
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MATCHED_SOURCE = f"{SOURCE}_matched"
CODES = {"update": UPDATE, "insert": INSERT, "delete": DELETE}


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

    def joined(self, how: str, *, broadcast: bool = False) -> DataFrame:
        """The join by the search condition, and in `CLAUSE` (int) which clause applies.

        Parameters
        ----------
        how
            The kind of join; the source is on its left.
        broadcast
            Whether every executor gets the whole source, and the table's rows stay where they are read.
        """
        from pyspark.sql import functions as F

        source = F.broadcast(self.source) if broadcast else self.source
        frame = source.join(self.target, self.plan.on.column, how)
        matched = frame[SOURCE].isNotNull() & frame[FILE].isNotNull()
        kinds = {
            "matched": matched,
            "not_matched": frame[FILE].isNull(),
            "not_matched_by_source": frame[SOURCE].isNull(),
        }
        branches = []
        for number, clause in enumerate(self.plan.clauses):
            branches.append((clause.applies(kinds[clause.when]), F.lit(number)))
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


def matched_rows(
    sides: Sides, change: DmlExecution, special: SpecialColumns, *, by_source: bool, broadcast: bool
) -> DataFrame:
    """The rows of the table that the source matches or that a clause changes, as they are after the merge.

    Returns
    -------
    DataFrame
        As of `all_rows`. A row that several of the source match is there as often; the values of rows that stay as they
        are, or go, mean nothing.
    """
    frame = sides.joined("right" if by_source else "inner", broadcast=broadcast)
    concerned = frame.where(frame[SOURCE].isNotNull() | (frame[CLAUSE] != NONE))
    return _Values(sides, change, special, concerned, keeps=False).frame(concerned[SOURCE])


def all_changes(sides: Sides, change: DmlExecution, special: SpecialColumns, *, by_source: bool) -> DataFrame:
    """All that a merge with inserts does, by one query: `matched_rows` and rows to insert, whose `FILE` is null."""
    frame = sides.joined("full" if by_source else "left")
    concerned = frame.where((frame[SOURCE].isNotNull() & frame[FILE].isNotNull()) | (frame[CLAUSE] != NONE))
    return _Values(sides, change, special, concerned, keeps=False).frame(concerned[SOURCE])


def inserted_rows(
    sides: Sides, change: DmlExecution, special: SpecialColumns, matched: DataFrame, *, broadcast: bool
) -> DataFrame:
    """The rows of the source that match none of the table and are inserted, as of `all_rows`.

    Parameters
    ----------
    matched
        In `SOURCE` the rows of the source that do match.
    broadcast
        Whether every executor gets these numbers.
    """
    from pyspark.sql import functions as F

    known = matched.select(matched[SOURCE].alias(_MATCHED_SOURCE))
    if broadcast:
        known = F.broadcast(known)
    alone = sides.source.join(known, sides.source[SOURCE] == known[_MATCHED_SOURCE], "left_anti")
    places = [F.lit(None).cast("int").alias(FILE), F.lit(None).cast("bigint").alias(ROW)]
    if change.plan.tracked:
        places += [F.lit(None).cast("bigint").alias(name) for name in (ROW_ID, ROW_VERSION)]
    applies = [
        (clause.applies(F.lit(True)), F.lit(number))
        for number, clause in enumerate(sides.plan.clauses)
        if clause.inserts
    ]
    frame = alone.select("*", *places, _case(applies, F.lit(NONE)).alias(CLAUSE))
    inserted = frame.where(frame[CLAUSE] != NONE)
    values = _Values(sides, change, special, inserted, keeps=False, inserts_only=True)
    return values.frame(inserted[SOURCE])


def new_values(
    sides: Sides,
    change: DmlExecution,
    special: SpecialColumns,
    matched: DataFrame,
    unchanged: Collection[str],
) -> DataFrame:
    """Of `matched_rows` what `rewrite_changed_files` takes: places, and the columns that some clause gives values for.

    Parameters
    ----------
    unchanged
        Columns whose new values are those that they have.
    """
    updates = {number: c for number, c in enumerate(sides.plan.clauses) if c.do == "update"}
    names = {name for clause in updates.values() for name in clause.assigned}
    if updates:
        names |= set(special.generated) - {g.column for g in change.plan.write.rows.generated}
    names -= set(unchanged)
    columns = [matched[quoted(name)] for name in change.columns_of_new_rows(names)] if updates else []
    rows = matched.select(*[matched[name] for name in (FILE, ROW, CLAUSE, SOURCE)], *columns)
    return change.rows_to_update(rows, names, updates)


def unchanged_keys(
    sides: Sides, change: DmlExecution, keys: Sequence[tuple[StructField, Column]]
) -> frozenset[str]:
    """The columns that are updated to what they are: matching rows have the same value in them.

    Parameters
    ----------
    keys
        The columns of the table that must equal a column of the source.
    """
    places = {field.name: n for n, field in enumerate(sides.plan.schema)}
    found = set()
    for field, key in keys:
        updates = [
            clause for clause in sides.plan.clauses if clause.do == "update" and field.name in clause.assigned
        ]
        given = [clause.values[places[field.name]] for clause in updates if clause.values is not None]
        values = [value for value in given if value is not None]
        if (
            _is_told_apart_by_bits(field.type)
            and all(clause.is_matched for clause in updates)
            and len(values) == len(updates)
            and change.target.engine.expressions.are_one([key, *values])
        ):
            found.add(field.name)
    return frozenset(found)


def _is_told_apart_by_bits(kind: DataType) -> bool:
    """Whether equal values are the same: not where there are two zeros, or collations."""
    return kind in INTEGRAL or kind == DATE or isinstance(kind, DecimalType)


def written_rows(
    sides: Sides, change: DmlExecution, rows: DataFrame, touched: CandidateFiles, *, repeated: bool
) -> DataFrame:
    """Those of `all_rows` that are written; arguments as of `rewritten_rows`."""
    wanted = rows[CLAUSE] != NONE
    if not change.plan.uses_deletion_vectors:
        wanted = wanted | rows[FILE].isin(touched.numbers.to_pylist())
    return _as_written(rows.where(wanted & ~_gone(sides, change, rows)), change, repeated)


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
    return without_places(rows)


def without_places(rows: DataFrame) -> DataFrame:
    """The rows as they are written, see `write_changed_rows`."""
    return rows.drop(SOURCE, CLAUSE, FILE, ROW)


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
        self,
        sides: Sides,
        change: DmlExecution,
        special: SpecialColumns,
        frame: DataFrame,
        *,
        keeps: bool,
        inserts_only: bool = False,
    ) -> None:
        # Where rows that no clause changes are not kept, the table's columns need not be read for their sake.
        self._keeps = keeps
        # Then the frame has no columns of the table.
        self._inserts_only = inserts_only
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
            if clause.values is not None and (clause.inserts or not self._inserts_only):
                found = clause.values[n]
                given.append((number, self._found_by_table(field, clause) if found is None else found))
        known = self._change.target.engine.expressions
        if not self._keeps and given and known.are_one([value for _, value in given]):
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
        branches = [(found.isin(those), F.lit(CODES[do])) for do, those in numbers.items()]
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
            before = self._plan.carried
            if self._inserts_only:
                before = [StoreCast(self._table, True).null(field.type) for field in self._plan.schema]
            columns += [value.alias(f"{BEFORE}{n}") for n, value in enumerate(before)]
        return columns
