"""The clauses of a MERGE as they are given, and which may stand together.

Source: delta-spark, `DeltaMergeInto`: of the clauses for the same rows only the last may be without condition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import pyarrow as pa

from delta_ds.conditions.dml import (
    MERGE_MISSING_WHEN,
    NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
    NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
)
from delta_ds.kernel.commands.dml.candidates import Rewritten
from delta_ds.kernel.commands.dml.changed_rows import DELETE, INSERT, UPDATE
from delta_ds.kernel.commands.dml.commit import Committed
from delta_ds.kernel.commands.dml.in_process import CommandSettings
from delta_ds.kernel.files.rows.casts import Casting, compile_column
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import StructType, arrow_type
from delta_ds.kernel.transaction.write.arrow import Rows, as_arrow
from delta_ds.kernel.transaction.write.schema_enforcement import data_schema
from delta_ds.records import dataclass, field, replace

When = Literal["matched", "not_matched", "not_matched_by_source"]
Do = Literal["update", "delete", "insert"]

LABELS = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}
_CONDITION_OMITTED = {
    "matched": NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    "not_matched": NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
    "not_matched_by_source": NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
}
# What history calls their conditions, and how many rows they changed.
PREDICATE_PARAMETERS: Mapping[When, str] = {
    "matched": "matchedPredicates",
    "not_matched": "notMatchedPredicates",
    "not_matched_by_source": "notMatchedBySourcePredicates",
}
_METRICS: Mapping[tuple[When, Do], str] = {
    ("matched", "update"): "numTargetRowsMatchedUpdated",
    ("matched", "delete"): "numTargetRowsMatchedDeleted",
    ("not_matched_by_source", "update"): "numTargetRowsNotMatchedBySourceUpdated",
    ("not_matched_by_source", "delete"): "numTargetRowsNotMatchedBySourceDeleted",
}
_CODES: Mapping[Do, int] = {"update": UPDATE, "insert": INSERT, "delete": DELETE}


class ClauseKind:
    """For which rows a clause is, and what it does with them."""

    when: When
    do: Do

    @property
    def label(self) -> str:
        """The clause in words, for messages."""
        return f"{LABELS[self.when]} {self.do.upper()}"

    @property
    def inserts(self) -> bool:
        return self.do == "insert"

    @property
    def deletes(self) -> bool:
        return self.do == "delete"

    @property
    def is_matched(self) -> bool:
        """Whether it is for rows of the table that the source matches."""
        return self.when == "matched"

    @property
    def is_by_source(self) -> bool:
        """Whether it is for rows of the table that the source does not match."""
        return self.when == "not_matched_by_source"


@dataclass(frozen=True, slots=True)
class Clause(ClauseKind):
    """A clause as it was given.

    Attributes
    ----------
    when, do
        For which rows, and what it does with them.
    condition
        Spark SQL; None: for all of them.
    assignments
        By column what it gets, in Spark SQL; None in an update or insert is `*`, all columns of the same name.
    leaves_out
        With `*`: columns of the table that are not assigned.
    """

    when: When
    do: Do
    condition: str | None = None
    assignments: Mapping[str, str] | None = None
    leaves_out: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """What it does, as `ChangedRows` has it."""
        return _CODES[self.do]


class GivenClause(Protocol):
    """What `effective_clauses` looks at, whatever conditions and values are made of."""

    @property
    def when(self) -> When: ...
    @property
    def do(self) -> Do: ...
    @property
    def condition(self) -> object: ...
    @property
    def assignments(self) -> Mapping[str, object] | None: ...


_Given = TypeVar("_Given", bound=GivenClause)


def effective_clauses(clauses: Sequence[_Given], table: str) -> tuple[_Given, ...]:
    """The clauses without updates of nothing on no condition, which delta-spark leaves out too.

    Raises
    ------
    UnsupportedOperationError
        `DELTA_MERGE_MISSING_WHEN`: there is none. `DELTA_NON_LAST_..._OMIT_CONDITION`: one that is not the last for
        its rows has no condition.
    """
    found = [c for c in clauses if c.do != "update" or c.condition is not None or c.assignments != {}]
    if not found:
        raise MERGE_MISSING_WHEN(table=table)
    for when, condition_omitted in _CONDITION_OMITTED.items():
        if any(c.condition is None for c in [c for c in found if c.when == when][:-1]):
            raise condition_omitted(table=table)
    return tuple(found)


def changed_rows(clauses: Sequence[ClauseKind], by_clause: Mapping[int, int]) -> dict[str, int]:
    """How many rows of the table clauses have changed, under the names that history gives their kinds.

    Parameters
    ----------
    by_clause
        By the number of a clause.
    """
    found = dict.fromkeys(_METRICS.values(), 0)
    for number, clause in enumerate(clauses):
        if not clause.inserts:
            found[_METRICS[clause.when, clause.do]] += by_clause.get(number, 0)
    return found


def is_relevant(clauses: Sequence[ClauseKind], found: Rewritten, files: int) -> bool:
    """Whether delta-spark commits, even if no row changes; `files` were looked at."""
    if all(clause.is_matched for clause in clauses):
        return bool(found.rows)
    return found.seen or (files > 0 and any(clause.is_by_source for clause in clauses))


def history_parameters(predicate: str, clauses: Sequence[Clause]) -> dict[str, str]:
    """The `operationParameters` of a MERGE."""
    parameters: dict[str, list[dict[str, str]]] = {name: [] for name in PREDICATE_PARAMETERS.values()}
    for clause in clauses:
        condition = {} if clause.condition is None else {"predicate": clause.condition}
        parameters[PREDICATE_PARAMETERS[clause.when]].append({**condition, "actionType": clause.do})
    return {"predicate": _text([predicate]), **{name: _text(value) for name, value in parameters.items()}}


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a MERGE did.

    Attributes
    ----------
    version
        What was committed; None where nothing changed, unless the command counts as a transaction: that is recorded.
    num_source_rows
        Rows of the source.
    num_target_rows_inserted, num_target_rows_updated, num_target_rows_deleted
        Rows that clauses made, changed and removed.
    num_target_rows_copied
        Rows that were written again as they are, as their files were replaced.
    num_output_rows
        All rows that were written.
    num_target_files_scanned, num_target_files_skipped_during_scan
        Files of the table that were looked into, and those that cannot hold a row that matters.
    num_target_files_added, num_target_files_removed
        Files of the commit.
    scan_time_ms, rewrite_time_ms, execution_time_ms
        What it took to find the rows and to write files, and all of it. Threads do the two at the same time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> merger = DeltaLog("/data/orders").merge(pa.table({"id": [1, 3]}), "target.id = source.id")
    >>> result = merger.when_matched_delete().execute()
    >>> result.version, result.num_target_rows_deleted
    (2, 2)
    """

    version: int | None
    num_source_rows: int = 0
    num_target_rows_inserted: int = 0
    num_target_rows_updated: int = 0
    num_target_rows_deleted: int = 0
    num_target_rows_copied: int = 0
    num_output_rows: int = 0
    num_target_files_scanned: int = 0
    num_target_files_skipped_during_scan: int = 0
    num_target_files_added: int = 0
    num_target_files_removed: int = 0
    scan_time_ms: int = 0
    rewrite_time_ms: int = 0
    execution_time_ms: int = 0


def counted(result: MergeResult, committed: Committed) -> MergeResult:
    """A result with what the history says of the commit."""
    metrics: Mapping[str, Any] = committed.metrics
    found = {name: metrics.get(metric, 0) for name, metric in _COUNTED.items()}
    return replace(result, version=committed.version, **found)


_COUNTED = {
    "num_target_rows_inserted": "numTargetRowsInserted",
    "num_target_rows_updated": "numTargetRowsUpdated",
    "num_target_rows_deleted": "numTargetRowsDeleted",
    "num_target_rows_copied": "numTargetRowsCopied",
    "num_output_rows": "numOutputRows",
    "num_target_files_added": "numTargetFilesAdded",
    "num_target_files_removed": "numTargetFilesRemoved",
    "scan_time_ms": "scanTimeMs",
    "rewrite_time_ms": "rewriteTimeMs",
    "execution_time_ms": "executionTimeMs",
}


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What a MERGE is asked to do.

    Attributes
    ----------
    predicate
        The search condition, in Spark SQL.
    clauses
        In the order they were given.
    source_alias, target_alias
        By which columns may be qualified.
    merge_schema
        Whether the table takes columns of the source that it does not have.
    settings
        What is said beside that.
    """

    predicate: str
    clauses: Sequence[Clause] = ()
    source_alias: str = "source"
    target_alias: str = "target"
    merge_schema: bool = False
    settings: CommandSettings = field(default_factory=CommandSettings)


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The rows of a source.

    Attributes
    ----------
    schema
        Its columns.
    rows
        All of them, of `arrow_type` of the schema's types; columns are of one chunk where one can hold them.
    """

    schema: StructType
    rows: pa.Table


def read_source(rows: Rows, timezone: str) -> MergeSource:
    """Read a source to its end.

    Raises
    ------
    SchemaError
        A column has a type that no table has.
    """
    table = rows if isinstance(rows, pa.Table) else _read(rows)
    schema = data_schema(schema_from_arrow(table.schema))
    casting = Casting(timezone)
    columns = []
    for target, column in zip(schema, table.columns, strict=True):
        converter = compile_column(column.type, target, casting, target.name)
        kind = arrow_type(target.type)
        chunks = column.chunks if converter is None else [converter(chunk) for chunk in column.chunks]
        columns.append(pa.chunked_array(chunks, kind))
    return MergeSource(schema, pa.table(columns, names=schema.names).combine_chunks())


def _read(rows: Rows) -> pa.Table:
    found = as_arrow(rows)
    return pa.Table.from_batches([found]) if isinstance(found, pa.RecordBatch) else found.read_all()
