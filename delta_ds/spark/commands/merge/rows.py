"""The join of a MERGE: the clause that applies to a row, and the row it gives.

What it found in the table and wrote, which rows of the table that hangs on, and how the history counts it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.dml import MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten, with_row_counts
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, DELETE, FILE, INSERT, NONE, ROW, SOURCE, UPDATE
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.dml.plan import SpecialColumns
from delta_ds.kernel.commands.merge.clauses import ClauseKind, changed_rows
from delta_ds.kernel.format.expressions.coercion import INTEGRAL
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal
from delta_ds.kernel.format.expressions.tree import Column as KernelColumn
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.types import DATE, DataType, DecimalType, StructField
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.records import dataclass
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.commands.dml_command import DmlExecution
from delta_ds.spark.commands.expression_resolution import Scope
from delta_ds.spark.commands.merge.plan import MergePlan, ResolvedClause
from delta_ds.spark.commands.merge.sides import as_literal, as_python
from delta_ds.spark.commands.store_casts import StoreCast
from delta_ds.spark.engines.seam.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.commands.dml_target import DmlTarget

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


def matched_rows(
    sides: Sides, change: DmlExecution, special: SpecialColumns, *, by_source: bool, broadcast: bool
) -> DataFrame:
    """The rows of the table that the source matches or that a clause changes, as they are after the merge.

    Returns
    -------
    DataFrame
        The table's columns, but those that are computed, and `CLAUSE`, `FILE`, `ROW`, and `SOURCE`, null for a row that
        the source does not match. A row that several of the source match is there as often; the values of rows that
        stay as they are, or go, mean nothing.
    """
    frame = sides.joined("right" if by_source else "inner", broadcast=broadcast)
    concerned = frame.where(frame[SOURCE].isNotNull() | (frame[CLAUSE] != NONE))
    updates = [n for n, clause in enumerate(sides.plan.clauses) if clause.do == "update"]
    return _Values(sides, change, special, concerned, updates).frame(FILE, ROW, SOURCE)


def all_changes(sides: Sides, change: DmlExecution, special: SpecialColumns, *, by_source: bool) -> DataFrame:
    """All that a merge with inserts does, by one query: `matched_rows` and rows to insert, whose `FILE` is null."""
    frame = sides.joined("full" if by_source else "left")
    concerned = frame.where((frame[SOURCE].isNotNull() & frame[FILE].isNotNull()) | (frame[CLAUSE] != NONE))
    clauses = range(len(sides.plan.clauses))
    return _Values(sides, change, special, concerned, clauses).frame(FILE, ROW, SOURCE)


def inserted_rows(
    sides: Sides, change: DmlExecution, special: SpecialColumns, matched: DataFrame, *, broadcast: bool
) -> DataFrame:
    """The rows of the source that match none of the table and are inserted.

    Parameters
    ----------
    matched
        In `SOURCE` the rows of the source that do match.
    broadcast
        Whether every executor gets these numbers.
    """
    from pyspark.sql import functions as F

    matched_numbers = matched.select(matched[SOURCE].alias(_MATCHED_SOURCE))
    if broadcast:
        matched_numbers = F.broadcast(matched_numbers)
    alone = sides.source.join(
        matched_numbers, sides.source[SOURCE] == matched_numbers[_MATCHED_SOURCE], "left_anti"
    )
    inserts = {number: clause for number, clause in enumerate(sides.plan.clauses) if clause.inserts}
    applies = [(clause.applies(F.lit(True)), F.lit(number)) for number, clause in inserts.items()]
    frame = alone.select("*", _case(applies, F.lit(NONE)).alias(CLAUSE))
    return _Values(sides, change, special, frame.where(frame[CLAUSE] != NONE), [*inserts]).frame()


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
    unchanged = set()
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
            unchanged.add(field.name)
    return frozenset(unchanged)


def _is_told_apart_by_bits(kind: DataType) -> bool:
    """Whether equal values are the same: not where there are two zeros, or collations."""
    return kind in INTEGRAL or kind == DATE or isinstance(kind, DecimalType)


def without_places(rows: DataFrame) -> DataFrame:
    """The rows as they are inserted."""
    return rows.drop(SOURCE, CLAUSE, FILE, ROW)


class _Values:
    """The values of the rows of the join after the merge: of rows that one of some clauses makes."""

    def __init__(
        self,
        sides: Sides,
        change: DmlExecution,
        special: SpecialColumns,
        frame: DataFrame,
        clauses: Iterable[int],
    ) -> None:
        self._clauses = {number: sides.plan.clauses[number] for number in clauses}
        self._plan = sides.plan
        self._sides = sides
        self._change = change
        self._special = special
        self._frame = frame
        self._table = change.target.handle.where
        self._cast = StoreCast.of(change.target, evolve=True)

    def frame(self, *places: str) -> DataFrame:
        """The rows with their values, in `CLAUSE` what changes them, and more columns of the join."""
        computed = {g.column for g in self._change.plan.write.rows.generated}
        columns = [
            self._value(n, field).alias(field.name)
            for n, field in enumerate(self._plan.schema)
            if field.name not in computed
        ]
        hidden = [self._frame[name] for name in (CLAUSE, *places)]
        return self._with_generated(self._frame.select(*columns, *hidden), computed)

    def _value(self, n: int, field: StructField) -> Column:
        given: list[tuple[int, Column]] = []
        for number, clause in self._clauses.items():
            if clause.values is not None:
                found = clause.values[n]
                given.append((number, self._found_by_table(field, clause) if found is None else found))
        known = self._change.target.engine.expressions
        if given and known.are_one([value for _, value in given]):
            return given[0][1]
        chosen = self._frame[CLAUSE]
        nothing = self._cast.null(field.type)
        return _case([(chosen == number, value) for number, value in given], nothing)

    def _found_by_table(self, field: StructField, clause: ResolvedClause) -> Column:
        """The value of a column that a clause does not assign: generated, default or identity."""
        cast = self._cast
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
                for n, clause in self._clauses.items()
                if clause.values is not None and name not in clause.assigned
            ]
            if name in computed or not missing:
                continue
            field = self._plan.schema.find(name)
            assert field is not None
            scope = Scope(found, self._table, MERGE.name, context=self._change.target.context)
            value = scope.resolve(text, "generated column")
            made = self._cast.cast(value.column, value.type, field.type, name)
            column = F.when(found[CLAUSE].isin(missing), made).otherwise(found[quoted(name)])
            found = found.withColumn(name, column)
        return found


@dataclass(frozen=True)
class Outcome:
    """What a MERGE found in the table and wrote.

    Attributes
    ----------
    found
        Which rows of the table change, and what tasks made of their files.
    relevant
        Whether there is anything to commit, even if no row changes: delta-spark then makes a version too.
    touched
        The files in which rows change.
    written
        How many rows were written.
    scanned_ms, materialized_ms
        When the rows were found, and the source was computed, in milliseconds since the command began.
    read
        What is read of the table as commits of others see it.
    files
        The files that were looked at.
    scope
        Which rows of the table count.
    source_rows
        How many rows the source has.
    """

    found: Rewritten
    relevant: bool
    touched: CandidateFiles
    written: int
    scanned_ms: int
    read: Expression | None = None
    files: CandidateFiles | None = None
    scope: RowScope | None = None
    source_rows: int = 0
    materialized_ms: int = 0


def several_match(table: str) -> UnsupportedOperationError:
    """The error of several rows of the source that would change one row of the table."""
    return MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE(
        table=table, usageReference="https://docs.delta.io/latest/delta-update.html"
    )


def counted(change: DmlExecution, clauses: Sequence[ClauseKind], outcome: Outcome) -> dict[str, int]:
    """The rows of the table that changed, as the history counts them."""
    touched = outcome.touched
    by_kind = changed_rows(clauses, outcome.found.by_clause)
    updated = sum(rows for name, rows in by_kind.items() if name.endswith("Updated"))
    deleted = sum(rows for name, rows in by_kind.items() if name.endswith("Deleted"))
    copied = 0
    if len(touched) and not change.plan.uses_deletion_vectors:
        known: CandidateFiles = (
            touched if touched.num_rows is not None else change.target.ask(with_row_counts, touched)
        )
        copied = (known.num_rows or 0) - updated - deleted
    return {
        "numTargetRowsCopied": copied,
        "numTargetRowsInserted": outcome.written - copied - updated
        if any(clause.inserts for clause in clauses)
        else 0,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": deleted,
        **by_kind,
    }


# So many source rows at most are named one by one; of more the smallest and the largest key is known.
_MOST_KEYS = 10_000


def row_scope(
    target: DmlTarget,
    given: DataFrame,
    sides: Sides,
    demands: Sequence[Expression],
    keys: Sequence[tuple[StructField, Column]],
    source_rows: int,
) -> RowScope | None:
    """The rows of the table that a MERGE could match; None where other rows count too, or that is not known.

    Parameters
    ----------
    target
        The table.
    given
        The source as the user gave it.
    sides
        The source, computed, and the clauses; none of them `WHEN NOT MATCHED BY SOURCE`.
    demands
        What every matching row meets, bounds of keys included; not bound.
    keys
        Columns of the table that equal an expression of the source, which has usable bounds.
    source_rows
        How many rows the source has.
    """
    if target.engine.frames.reads_by_python(given) or has_subqueries(sides):
        return None
    parts = list(demands)
    plain = [(field, value) for field, value in keys if compares_by_bytes(field)]
    if plain and tracks_rows(target.state) and source_rows <= _MOST_KEYS:
        parts += _one_of(sides.source, plain)
    clauses = sides.plan.clauses
    return RowScope(target.understood(parts), misses_count=any(clause.inserts for clause in clauses))


def _one_of(source: DataFrame, keys: Sequence[tuple[StructField, Column]]) -> list[Expression]:
    from pyspark.sql import functions as F

    sets = source.agg(*(F.collect_set(as_python(field.type, value)) for field, value in keys)).collect()[0]
    found: list[Expression] = []
    for (field, _), values in zip(keys, sets, strict=True):
        literals = [as_literal(field.type, value) for value in values]
        if literals and None not in literals:
            items = (Literal(value, field.type) for value in literals)
            found.append(Call("in", (KernelColumn((field.name,)), *items)))
    return found


def has_subqueries(sides: Sides) -> bool:
    """Whether a value of a clause is the answer of a query; a condition never is."""
    values = (value for clause in sides.plan.clauses for value in clause.values or () if value is not None)
    return engine_of(sides.source.sparkSession).expressions.has_subqueries(values)
