"""`RowPipeline`: convert, complete and check the batches of one task."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.files.read.column_conversion import repeat
from delta_ds.kernel.files.rows.casts import Casting, Converter, compile_column, match_names
from delta_ds.kernel.files.rows.checks import RowCheck
from delta_ds.kernel.files.rows.generated import IdentityValues
from delta_ds.kernel.files.rows.plan import RowPlan
from delta_ds.kernel.format.schema.types import arrow_schema

_Part = tuple["int | None", "Converter | None"]


class RowPipeline:
    """Runs a plan on the batches of one task.

    Parameters
    ----------
    plan
        What to do.
    task
        The number of the task among those of the write; identity values depend on it.

    Raises
    ------
    UnsupportedOperationError
        Identity values are needed, and the number is beyond what they can be generated for.
    """

    def __init__(self, plan: RowPlan, task: int = 0) -> None:
        self._plan = plan
        self._schema = arrow_schema(plan.table)
        self._places = {name: i for i, name in enumerate(self._schema.names)}
        self._defaults = {d.column: d.value(plan.timezone) for d in plan.defaults}
        self._identities = [IdentityValues(identity, task) for identity in plan.identities]
        self._generated = [self._bind(g.column) for g in plan.generated]
        found = ((check, check.finder(plan.table, plan.timezone)) for check in plan.checks)
        self._checks = [(check, find) for check, find in found if find is not None]
        self._compiled = functools.lru_cache(maxsize=8)(self._compile)

    def process(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows as the table stores them.

        Parameters
        ----------
        batch
            Incoming rows; columns are found by name.

        Returns
        -------
        pyarrow.RecordBatch
            As many rows in the same order, of exactly `arrow_schema(table)`; the batch itself where there is
            nothing to do.

        Raises
        ------
        InvariantViolationError
            A row breaks a constraint, or a value does not fit into its column; the first one is told.
        PredicateError
            An expression cannot be computed for some row (a division by zero, ...).
        SchemaError
            The batch has columns or types that the table cannot store.
        """
        rows = self._completed(batch)
        self._check(rows)
        return rows

    def identity_marks(self) -> dict[str, int]:
        """The value given out last, the furthest in the direction of the step, per generated column."""
        marks = ((values.identity.column, values.mark) for values in self._identities)
        return {column: mark for column, mark in marks if mark is not None}

    # --- completing

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        parts = self._compiled(batch.schema)
        if parts is None:
            return batch
        count = batch.num_rows
        arrays = [self._column(n, part, batch) for n, part in enumerate(parts)]
        for values in self._identities:
            place = self._places[values.identity.column]
            arrays[place] = _assign_identities(arrays[place], values, count)
        rows = self._batch(arrays, count)
        for column, compute in self._generated:
            arrays[self._places[column]] = compute(rows)
            rows = self._batch(arrays, count)
        return rows

    def _compile(self, schema: pa.Schema) -> list[_Part] | None:
        """Per column of the table where it is in the batch and how it is converted; None: nothing to do."""
        plan = self._plan
        casting = Casting(plan.timezone, plan.implicit)
        matched = match_names(schema.names, plan.table)
        parts: list[_Part] = [
            (at, None if at is None else compile_column(schema.field(at).type, f, casting, f.name))
            for at, f in zip(matched, plan.table, strict=True)
        ]
        same = schema.equals(self._schema) and all(converter is None for _, converter in parts)
        same = same and not self._identities
        return None if same else parts

    def _column(self, n: int, part: _Part, batch: pa.RecordBatch) -> pa.Array:
        at, converter = part
        if at is not None:
            array = batch.column(at)
            return array if converter is None else converter(array)
        field = self._schema.field(n)
        default = self._defaults.get(field.name)
        return pa.nulls(batch.num_rows, field.type) if default is None else repeat(default, batch.num_rows)

    def _batch(self, arrays: list[pa.Array], rows: int) -> pa.RecordBatch:
        if arrays:
            return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))

    def _bind(self, column: str) -> tuple[str, Callable[[pa.RecordBatch], pa.Array]]:
        generated = next(g for g in self._plan.generated if g.column == column)
        field = self._plan.table.find(column)
        assert field is not None
        clause = generated.clause.cast_to(field.type)
        bound = clause.bound(self._plan.table, self._plan.timezone, stored=True)
        return column, lambda rows: clause.evaluated(bound, rows)

    # --- checking

    def _check(self, rows: pa.RecordBatch) -> None:
        """Raise the error for the first row that fails a check; of several checks, the first."""
        worst: tuple[int, RowCheck] | None = None
        for check, find in self._checks:
            row = find(rows)
            if row >= 0 and (worst is None or row < worst[0]):
                worst = (row, check)
        if worst is not None:
            raise worst[1].violation(rows, worst[0], self._plan.table, self._plan.timezone)


def _assign_identities(given: pa.Array, values: IdentityValues, count: int) -> pa.Array:
    if not values.identity.only_missing:
        return values.next(count)
    missing = given.is_null()
    if not missing.true_count:
        return given
    return pc.replace_with_mask(given, missing, values.next(missing.true_count))
