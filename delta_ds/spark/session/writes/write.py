"""Carry a write out: the one function that every way of writing rows ends in.

Source: delta-spark, `WriteIntoDelta`, and its answers to the same calls.

Writes that make their table, or put one in the place of another: CREATE and REPLACE ... AS SELECT in all forms.

Source: delta-spark, `CreateDeltaTableCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from delta_ds.conditions.options import REPLACE_ON_OR_USING_NEEDS_SESSION
from delta_ds.events.commands import OPTION_PASSED_OVER
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.operations import (
    CREATE_OR_REPLACE_TABLE_AS_SELECT,
    CREATE_TABLE_AS_SELECT,
    REPLACE_TABLE_AS_SELECT,
)
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.write import (
    ERROR,
    IGNORE,
    READ_VERSION_OPTION,
    REPORT_FOLDER_OPTION,
    NewTableOptions,
)
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE, batch_intent
from delta_ds.records import dataclass, field
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.base.kinds.session_facts import facts_of, use_txn, with_session_settings
from delta_ds.spark.base.session_conf import source_in_python
from delta_ds.spark.base.table_names import FORMAT, path_option
from delta_ds.spark.engines.monkeypatch import call_original
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session.writes.columns import align
from delta_ds.spark.session.writes.request import (
    BY_PLACE,
    MAKE_TABLE,
    SAVE,
    Table,
    WriteRequest,
    complete_options,
    existing_table,
    find_table,
    given,
    leaves_table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.kernel.format.options.settings import SessionFacts
    from delta_ds.kernel.transaction.write.intent import WriteIntent
    from delta_ds.spark.engines.seam.engine import Writes


class Replacement(Protocol):
    """What finds the rows that written ones take the place of: a command, which stands above all writes."""

    def __call__(
        self,
        source: DataFrame,
        intent: WriteIntent,
        aligned: Callable[[DataFrame], DataFrame],
        store: Mapping[str, str],
        *,
        by_place: bool = False,
    ) -> None:
        """Write rows; see `commands/replace.py`."""
        ...


_replacements: list[Replacement] = []


def use_replacement(run: Replacement) -> None:
    """Say who replaces rows that match written ones, in all sessions."""
    _replacements[:] = [run]


def write(request: WriteRequest) -> None:
    """Write rows as they were asked to be written.

    Raises
    ------
    NotADeltaTableError
        The way of writing needs a table, and there is none.
    TableExistsError
        The mode is `error`, and there is a table, or another one has made it in the meantime.
    DeltaError
        The rows do not fit, the table cannot be written, or an option is not known; nothing was written.
    """
    spark = request.rows.sparkSession
    facts = facts_of(spark)
    _write(request, facts)
    if given(request.options, "txnVersion") is None:
        use_txn(spark, facts)


def _write(request: WriteRequest, facts: SessionFacts) -> None:
    spark = request.rows.sparkSession
    if request.way.makes_named and leaves_table(spark, request):
        return
    options = complete_options(request, facts)
    overwrite = request.mode == OVERWRITE
    # What no table can honour is refused before one is looked at.
    intent = batch_intent(options, OVERWRITE if overwrite else APPEND)
    rows = request.rows
    table: Table | None = None
    if request.way.is_aligned:
        table = existing_table(spark, options, request.way.call)
    elif intent.replaces_matches:
        table = find_table(spark, options)
    if table is not None and intent.replaces_matches:
        _replace_matches(request, intent, table, facts, {k: v for k, v in options.items() if is_of_store(k)})
        return
    if table is not None:
        rows = align(rows, table, request.way, intent.options, facts)
    elif (
        request.mode == IGNORE and path_option(options) is not None and find_table(spark, options) is not None
    ):
        return
    writes = engine_of(spark).writes
    try:
        with writes.overflow_of_inserts():
            _carry_out(rows, writes, options, overwrite=overwrite)
    except SchemaError:
        if rows is not request.rows:
            # Constants that no column can hold are told first.
            writes.check_constants(rows)
        raise


def _replace_matches(
    request: WriteRequest, intent: WriteIntent, table: Table, facts: SessionFacts, store: Mapping[str, str]
) -> None:
    """Write rows in the place of those that they match: a command, which has the session find them."""
    way, writes = request.way, engine_of(request.rows.sparkSession).writes

    def aligned(rows: DataFrame) -> DataFrame:
        return align(rows, table, way, intent.options, facts) if way.is_aligned else rows

    if not _replacements:
        raise REPLACE_ON_OR_USING_NEEDS_SESSION(table=table.address)
    with writes.overflow_of_inserts():
        _replacements[0](request.rows, intent, aligned, store, by_place=way.columns == BY_PLACE)


def insert_rows(df: DataFrame, options: Mapping[str, str], overwrite: bool) -> None:
    """Write rows as `INSERT INTO` and `INSERT OVERWRITE` on a view of a table do.

    Parameters
    ----------
    df
        The rows, with the columns of the table.
    options
        `path`, and what the filesystem needs.
    """
    write(WriteRequest(df, SAVE, OVERWRITE if overwrite else APPEND, options))


def _carry_out(rows: DataFrame, writes: Writes, options: Mapping[str, str], *, overwrite: bool) -> None:
    """Write by Spark's own writer where that is possible, else by the data source."""
    pending = writes.save(rows, options, overwrite=overwrite)
    if pending is None:
        return
    rows, options = pending
    spark = rows.sparkSession
    options = _with_version_read(rows, options)
    sealed = seal(spark, with_session_settings(spark, options), FORMAT)
    writer = (
        rows.write.format(source_in_python(spark)).mode(OVERWRITE if overwrite else APPEND).options(**sealed)
    )
    # The commit is made in a process of its own.
    with writes.reports() as folder, delta_errors():
        if folder is not None:
            writer = writer.option(REPORT_FOLDER_OPTION, folder)
        call_original(writer, "save")
    writes.refresh(options)


def _with_version_read(rows: DataFrame, options: Mapping[str, str]) -> Mapping[str, str]:
    """Options of a write that say so where its rows come from the table itself: what changes it contradicts them.

    The data source writes in processes that see no query. The version is asked for before the rows are read.
    """
    spark, path = rows.sparkSession, path_option(options)
    if path is None or given(options, READ_VERSION_OPTION) is not None:
        return options
    if not engine_of(spark).frames.reads(rows, path):
        return options
    found = find_table(spark, options)
    return options if found is None else {**options, READ_VERSION_OPTION: str(found.version)}


CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create_or_replace"
_OPERATIONS = {
    CREATE: CREATE_TABLE_AS_SELECT,
    REPLACE: REPLACE_TABLE_AS_SELECT,
    CREATE_OR_REPLACE: CREATE_OR_REPLACE_TABLE_AS_SELECT,
}


@dataclass(frozen=True)
class NewTable:
    """A table as a call or statement describes it.

    Attributes
    ----------
    mode
        `create`, `replace` or `create_or_replace`.
    schema
        Its columns, with generated, identity and default values in their metadata; empty where none are given.
    partitioning, clustering
        Columns as in SQL.
    properties
        TBLPROPERTIES.
    options
        OPTIONS: of the write, and of the filesystem.
    comment
        The description of the table.
    """

    mode: str
    schema: StructType = StructType(())
    partitioning: Sequence[str] = ()
    clustering: Sequence[str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    comment: str | None = None


def as_new_table(
    rows: DataFrame,
    table: NewTable,
    options: Mapping[str, str],
    *,
    managed: bool = False,
    name: str | None = None,
    is_save_as_table: bool = False,
) -> WriteRequest:
    """The write that makes a table with its rows.

    Parameters
    ----------
    table
        The table; its columns are those of the rows.
    options
        Of the writer; `path` and what the filesystem needs among them.
    managed
        Whether the table's folder belongs to a catalog.
    name
        By which a catalog is to know the table; None: it is known by its path.
    is_save_as_table
        The call is `saveAsTable`: in mode overwrite it replaces rows, and the table that is there stays.
    """
    overwrites = table.mode == CREATE_OR_REPLACE and is_save_as_table
    definition = NewTableOptions(
        operation=_OPERATIONS[table.mode].name,
        properties=dict(table.properties),
        description=table.comment,
        managed=managed,
        name=name,
        is_save_as_table_overwrite=overwrites,
    )
    return WriteRequest(
        rows,
        MAKE_TABLE,
        ERROR if table.mode == CREATE else OVERWRITE,
        {**table.options, **_counting(table, options)},
        table.partitioning,
        table.clustering or (),
        definition=definition,
        replaces_table=table.mode != CREATE and not overwrites,
    )


def _counting(table: NewTable, options: Mapping[str, str]) -> dict[str, str]:
    """The writer's options but for `userMetadata`, which only counts where a table may be there, as in delta-spark."""
    if table.mode == CREATE_OR_REPLACE:
        return dict(options)
    kept = {name: text for name, text in options.items() if name.lower() != "usermetadata"}
    if len(kept) != len(options):
        hint = f"set spark.databricks.delta.commitInfo.userMetadata for {_OPERATIONS[table.mode].name}"
        OPTION_PASSED_OVER.log(option="userMetadata", kind="write", hint=hint)
    return kept
