"""Tables that the kernel writes for other engines, each with the rows it must hold at every version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import DataType, StructField, StructType, arrow_schema
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.write.arrow import write_batches

Row = dict[str, Any]


class Written:
    """A table under construction, and a plain model of what is in it.

    The model knows nothing of files: it is what the calls of this class say. A test that finds the same rows in
    another engine has shown more than that two readers agree.

    Attributes
    ----------
    path, log
        Where it lies.
    rows
        Of the latest version.
    versions
        Of every version, by number.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = DeltaLog(path)
        self.rows: list[Row] = []
        self.versions: dict[int, list[Row]] = {}

    def create(
        self,
        schema: StructType,
        partition_columns: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        """Make or replace the table; it is empty then."""
        self.rows = []
        self._note(create_table(self.log, schema, partition_columns, properties, **how))

    def append(
        self,
        rows: Sequence[Row],
        schema: StructType | None = None,
        *,
        becomes: Sequence[Row] | None = None,
        **options: Any,
    ) -> None:
        """Append rows.

        Parameters
        ----------
        rows
            Column names to values.
        schema
            Of the rows; the table's columns that the first row names, if left out.
        becomes
            The rows as they must be read, where that is not how they are written.
        options
            Of the write.
        """
        self._write(rows, schema, "append", options)
        self.rows = self.rows + list(rows if becomes is None else becomes)
        self._note(self.log.snapshot().version)

    def overwrite(
        self,
        rows: Sequence[Row],
        schema: StructType | None = None,
        *,
        keeps: Callable[[Row], bool] = lambda row: False,
        becomes: Sequence[Row] | None = None,
        **options: Any,
    ) -> None:
        """Overwrite the table, or the rows that `keeps` does not name; the rest is as for `append`."""
        self._write(rows, schema, "overwrite", options)
        self.rows = [row for row in self.rows if keeps(row)] + list(rows if becomes is None else becomes)
        self._note(self.log.snapshot().version)

    def change(
        self, command: Callable[..., object], *arguments: Any, row: Callable[[Row], Row] = dict, **named: Any
    ) -> None:
        """Call a command of the kernel on the log; `row` is what it makes of every row."""
        before = self.log.snapshot().version
        command(self.log, *arguments, **named)
        latest = self.log.snapshot().version
        for version in range(before + 1, latest):
            self._note(version)
        self.rows = [row(dict(r)) for r in self.rows]
        if latest > before:
            self._note(latest)

    def telling_versions(self) -> list[int]:
        """The latest version, and each before it that has rows, and other rows or another schema than the next."""
        state = {v: (rows, self.log.snapshot(v).metadata.schema_string) for v, rows in self.versions.items()}
        return [v for v in state if v + 1 not in state or (state[v][0] and state[v] != state[v + 1])]

    def expected(self, version: int) -> pa.Table:
        """The rows that a version must hold; columns that the model does not name are null."""
        schema = arrow_schema(self.log.snapshot(version).schema)
        return pa.Table.from_pylist(self.versions[version], schema=schema)

    def _write(
        self, rows: Sequence[Row], schema: StructType | None, mode: str, options: Mapping[str, Any]
    ) -> None:
        if schema is None:
            schema = plain(self.log.snapshot().schema, rows[0] if rows else None)
        batch = pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(schema))
        write_batches(self.log.start_transaction(create=True), schema, [batch], mode, options)

    def _note(self, version: int | None) -> None:
        assert version is not None, f"{self.path} is there already"
        self.versions[version] = list(self.rows)


def plain(schema: StructType, columns: Row | None = None) -> StructType:
    """The schema as rows bring it along: all nullable, nothing known of the table; of some columns or all."""
    return StructType(
        tuple(StructField(f.name, f.type) for f in schema if columns is None or f.name in columns)
    )


def struct(*fields: StructField, **types: DataType) -> StructType:
    """A struct of nullable fields, after some that are spelt out."""
    return StructType((*fields, *(StructField(name, kind) for name, kind in types.items())))


# What delta-spark does with a table where the catalogue says nothing else: an insert, an update and a deletion of
# rows that are there, so that it fits all tables.
MERGE = (
    "MERGE INTO {t} t USING (SELECT * FROM {t} WHERE id IN (1, 2, 3)) s ON t.id = s.id AND s.id > 1"
    " WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET t.id = t.id + 1000"
    " WHEN NOT MATCHED THEN INSERT *"
)
ALL_STEPS = (
    "INSERT INTO {t} SELECT * FROM {t} WHERE id = 1",
    "DELETE FROM {t} WHERE id = 2",
    "UPDATE {t} SET id = id + 100 WHERE id = 1",
    MERGE,
    "OPTIMIZE {t}",
    "VACUUM {t} RETAIN 0 HOURS",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One table of the catalogue, and what other engines are to make of it.

    Attributes
    ----------
    name
        A folder's name.
    build
        Writes the table.
    filters
        Predicates by which delta-spark must skip files, and how many files it has to open then.
    steps
        SQL that delta-spark runs on the table, one after the other; `{t}` is the table.
    refused
        SQL that delta-spark must refuse on the table, and what its error says (a regular expression).
    checkpointed
        delta-spark writes a checkpoint then.
    numbered
        Columns that other writers number themselves: they are left out of rows that are appended again.
    changes
        There is a change feed from version 0 on.
    row_ids
        Rows have ids.
    deltalake, deltalake_writes
        None: deltalake reads it, appends to it. Else what its refusal says (a regular expression).
    deltalake_misreads, deltalake_miswrites
        Why that is not asked for, though it does not refuse: what it does otherwise than delta-spark.
    """

    name: str
    build: Callable[[Written], None]
    filters: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[str, ...] = (MERGE,)
    refused: Mapping[str, str] = field(default_factory=dict)
    checkpointed: bool = False
    numbered: tuple[str, ...] = ()
    changes: bool = False
    row_ids: bool = False
    deltalake: str | None = None
    deltalake_writes: str | None = None
    deltalake_misreads: str | None = None
    deltalake_miswrites: str | None = None


CASES: dict[str, Case] = {}


def case(**about: Any) -> Callable[[Callable[[Written], None]], Callable[[Written], None]]:
    """Put a function that writes a table into the catalogue, under its own name."""

    def register(build: Callable[[Written], None]) -> Callable[[Written], None]:
        name = build.__name__
        assert name not in CASES, name
        CASES[name] = Case(name, build, **about)
        return build

    return register
