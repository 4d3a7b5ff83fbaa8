"""The rows of a MERGE: which clause applies to a row of the join, and what it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_ds.conditions.dml import MERGE_NEEDS_SPARK, MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.base.arrow_buffers import flags, integers, mask
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, FILE, NONE, ROW
from delta_ds.kernel.commands.dml.new_values import with_field
from delta_ds.kernel.commands.merge.pairs import Pairs, batch_of, one_array
from delta_ds.kernel.commands.merge.plan import MergePlan
from delta_ds.kernel.commands.merge.resolver import ResolvedClause
from delta_ds.kernel.commands.merge.sides import SOURCE, TARGET, Name
from delta_ds.kernel.files.rows.casts import Casting, can_store, compile_column
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.tree import Column, Expression
from delta_ds.kernel.format.schema.types import StructField, arrow_type

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
    Numbered = Sequence[tuple[int, ResolvedClause]]

_USAGE = "https://docs.delta.io/latest/delta-update.html"
_SOURCE_ROWS = 1 << 16


class MergeRows:
    """Finds what becomes of rows; serves several threads.

    Parameters
    ----------
    plan
        The MERGE.
    source
        All rows of the source, by its own names, in the Arrow types of its schema.

    Attributes
    ----------
    columns
        Those of the table that have to be read.
    pairs
        Finds matching rows.
    """

    def __init__(self, plan: MergePlan, source: pa.Table) -> None:
        self._plan = plan
        self._source = pa.table(
            source.columns, names=[plan.sides.name_of(SOURCE, name) for name in source.column_names]
        )
        self.columns = self._columns_of(TARGET)
        self.pairs = Pairs(plan, self._source, [*_expressions(plan.of("matched")), *self._kept()])
        self._names = list(dict.fromkeys(name for _, clause in plan.updates for name in clause.values))

    def _kept(self) -> list[Expression]:
        """The columns of the table that some updates leave as they are and others change."""
        updates = [clause.values for _, clause in self._plan.updates]
        names = {name for values in updates for name in values}
        some = {name for name in names if any(name not in values for values in updates)}
        found = (_column_of(self._plan, field) for field in self._plan.sides.target if field.name in some)
        return [column for column in found if column is not None]

    def _columns_of(self, side: Name) -> list[str]:
        """The columns of the table that have to be read."""
        plan = self._plan
        read = [
            *plan.conditions,
            *_expressions(plan.of("matched")),
            *_expressions(plan.of("not_matched_by_source")),
        ]
        names = plan.sides.column_names(side, [*read, *self._kept()])
        return [name for name in plan.sides.schema_of(side).names if name in names]

    @property
    def num_source_rows(self) -> int:
        """How many rows the source has."""
        return int(self._source.num_rows)

    def without(self, names: Sequence[str]) -> None:
        """Make no new values for some columns, which stay as they are."""
        self._names = [name for name in self._names if name not in names]

    # --- rows of the table

    def changes(
        self, batch: pa.RecordBatch, file: int, seen: npt.NDArray[np.bool_]
    ) -> Iterator[pa.RecordBatch]:
        """What `rewrite_changed_files` takes: of rows of a file those that match, and those that change.

        Parameters
        ----------
        batch
            `columns` of the table by their own names, and last `_metadata` with `row_index`.
        file
            The number of the file.
        seen
            For each row of the source whether it matches any; becomes true of those that do.
        """
        places = np.asarray(batch.column(batch.num_columns - 1).field("row_index")).astype(np.int64)
        sides = self._plan.sides
        names = [sides.name_of(TARGET, name) for name in batch.schema.names[:-1]]
        rows = batch_of(batch.columns[:-1], names, batch.num_rows)
        matched = self._plan.of("matched")
        by_source = self._plan.of("not_matched_by_source")
        alone = np.ones(batch.num_rows, np.bool_)
        for at, source, joined in self.pairs.matches(rows):
            again = ~alone[at]
            again[1:] |= at[1:] == at[:-1]
            if again.any():
                self._check_may_repeat()
                at, joined = at[~again], joined.filter(mask(~again))
            alone[at] = False
            seen[source] = True
            clauses = first_that_applies(matched, joined)
            yield self._changed(file, places[at], clauses, joined)
        if by_source and alone.any():
            left = rows if alone.all() else rows.filter(mask(alone))
            clauses = first_that_applies(by_source, left)
            changed = clauses != NONE
            if changed.any():
                if not changed.all():
                    left = left.filter(mask(changed))
                yield self._changed(file, places[alone][changed], clauses[changed], left)

    def _check_may_repeat(self) -> None:
        """Refuse several rows of the source for one of the table, unless all of them delete it.

        All pairs that meet the search condition count, whatever the conditions of clauses say.
        Source: delta-spark, `ClassicMergeExecutor.findTouchedFiles` and `isOnlyOneUnconditionalDelete`.
        """
        matched = [clause for _, clause in self._plan.of("matched")]
        if len(matched) == 1 and matched[0].clause.do == "delete" and matched[0].condition is None:
            return
        raise self.several_match()

    def several_match(self) -> UnsupportedOperationError:
        """The error of several rows of the source that would change one row of the table."""
        return MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE(
            table=self._plan.sides.table, usageReference=_USAGE
        )

    def mark_seen(self, batch: pa.RecordBatch, seen: npt.NDArray[np.bool_]) -> None:
        """As `changes`, where no clause changes rows of the table."""
        names = [self._plan.sides.name_of(TARGET, name) for name in batch.schema.names]
        for _, source, _ in self.pairs.matches(batch_of(batch.columns, names, batch.num_rows)):
            seen[source] = True

    def _changed(self, file: int, places: Rows, clauses: Rows, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [integers(np.full(len(places), file)), integers(places), integers(clauses)]
        values = self._values(self._names, self._plan.updates, clauses, rows)
        return pa.RecordBatch.from_arrays([*columns, *values], names=[FILE, ROW, CLAUSE, *self._names])

    # --- rows of the source

    def insertions(self, matched: Rows) -> Iterator[pa.RecordBatch]:
        """The rows that are inserted.

        Parameters
        ----------
        matched
            The rows of the source that match.
        """
        inserts = self._plan.of("not_matched")
        alone = np.ones(self._source.num_rows, np.bool_)
        alone[matched] = False
        names = list(dict.fromkeys(name for _, clause in inserts for name in clause.values))
        for start in range(0, len(alone), _SOURCE_ROWS):
            wanted = np.flatnonzero(alone[start : start + _SOURCE_ROWS]) + start
            if not len(wanted):
                continue
            taken = self._source.take(integers(wanted))
            rows = batch_of([one_array(c) for c in taken.columns], taken.column_names, len(wanted))
            clauses = first_that_applies(inserts, rows)
            applies = clauses != NONE
            if applies.any():
                rows = rows if applies.all() else rows.filter(mask(applies))
                values = self._values(names, inserts, clauses[applies], rows)
                yield batch_of(values, names, rows.num_rows)

    # --- values

    def _values(
        self, names: Sequence[str], clauses: Numbered, applied: Rows, rows: pa.RecordBatch
    ) -> list[pa.Array]:
        """The new values of rows, a column each; those of rows that none of the clauses changes are null."""
        if not names:
            return []
        parts: list[tuple[ResolvedClause, pa.RecordBatch]] = []
        order = np.full(len(applied), -1)
        done = 0
        for number, clause in clauses:
            there = np.flatnonzero(applied == number)
            if len(there):
                parts.append((clause, rows if len(there) == len(applied) else rows.take(integers(there))))
                order[there] = np.arange(done, done + len(there))
                done += len(there)
        in_place = done == len(applied) and len(parts) == 1
        places = (
            None if in_place else integers(order) if done == len(applied) else pa.array(order, mask=order < 0)
        )
        return [self._column(name, parts, places) for name in names]

    def _column(
        self, name: str, parts: Sequence[tuple[ResolvedClause, pa.RecordBatch]], places: pa.Array | None
    ) -> pa.Array:
        field = self._plan.schema.find(name)
        assert field is not None  # clauses only name such
        made = [self._made(field, clause, rows) for clause, rows in parts]
        if places is None:
            return made[0]
        found = pa.concat_arrays(made) if made else pa.nulls(0, arrow_type(field.type))
        return found.take(places)

    def _made(self, field: StructField, clause: ResolvedClause, rows: pa.RecordBatch) -> pa.Array:
        value = clause.values.get(field.name)
        if value is None:
            value = _column_of(self._plan, field)
        if value is None:
            return pa.nulls(rows.num_rows, arrow_type(field.type))
        found = evaluate(value, rows)
        found = self._cast(found, value, field)
        if clause.clause.inserts and field.name in self._plan.generates and field.name in clause.assigned:
            self._check_no_null(found, field, clause)
        for inside in clause.fields.get(field.name, ()):
            new = self._cast(evaluate(inside.value, rows), inside.value, inside.field)
            found = with_field(found, list(inside.path), new)
        return found

    def _check_no_null(self, found: pa.Array, field: StructField, clause: ResolvedClause) -> None:
        """Refuse null for an identity column that other clauses leave to the table, which would give it a number."""
        if found.null_count:
            raise MERGE_NEEDS_SPARK(
                what=f"the value of {field.name} in {clause.clause.label}",
                table=self._plan.sides.table,
                expression="null for an identity column that another clause leaves to the table",
            )

    def _cast(self, found: pa.Array, value: Expression, field: StructField) -> pa.Array:
        kind = value.type
        assert kind is not None
        casting = Casting(self._plan.sides.timezone, implicit=not can_store(kind, field.type))
        converter = compile_column(found.type, field, casting, field.name)
        return found if converter is None else converter(found)


def first_that_applies(clauses: Numbered, rows: pa.RecordBatch) -> Rows:
    """For each row the number of the first clause whose condition is true; `NONE` where there is none."""
    found = np.full(rows.num_rows, NONE)
    open_rows = np.ones(rows.num_rows, np.bool_)
    for number, clause in clauses:
        if not open_rows.any():
            break
        if clause.condition is None:
            found[open_rows] = number
            break
        # As in SQL's CASE: a condition is not looked at where one before it is true.
        left = rows if open_rows.all() else rows.filter(mask(open_rows))
        holds = flags(evaluate(clause.condition, left).fill_null(FALSE))
        there = np.flatnonzero(open_rows)[holds]
        found[there] = number
        open_rows[there] = False
    return found


def _expressions(clauses: Numbered) -> list[Expression | None]:
    return [e for _, clause in clauses for e in clause.expressions]


def _column_of(plan: MergePlan, field: StructField) -> Column | None:
    """The column of the table as it is, bound."""
    there = plan.sides.target.find(field.name)
    return None if there is None else Column((plan.sides.name_of(TARGET, there.name),), there.type)
