"""A command of a client that the kernel runs at a server of others, as a whole; see `engines/connect/kernel_rows.py`.

That needs expressions which the kernel reads, in a session where they mean to Spark what they mean to the kernel.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.conditions.dml import COMMAND_NEEDS_SPARK
from delta_ds.events.commands import ROWS_FOUND_BY_SPARK
from delta_ds.exceptions import (
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.commands.dml.in_process import CommandSettings
from delta_ds.kernel.commands.merge.clauses import Clause, MergeRequest
from delta_ds.kernel.format.expressions.tree import Expression, columns
from delta_ds.kernel.format.operations import DELETE, MERGE
from delta_ds.kernel.format.options.settings import (
    ANSI_POLICY,
    BY_FILES,
    CONFLICT_DETECTION,
    TIME_ZONE,
    USER_METADATA,
    conflict_detection,
)
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import HIDDEN, parse_path, quote
from delta_ds.kernel.format.schema.types import StructType, walk
from delta_ds.records import replace
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.session_facts import all_settings, engine_info, facts_of
from delta_ds.spark.base.query_needs import moves, parsed_text
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.base.session_conf import (
    LOCAL_OPTIMIZE_CONF,
    LOCAL_OPTIMIZE_SIZE,
    MERGE_SOURCE_CONF,
    MERGE_SOURCE_SIZE,
    RESULTS_BOUND,
    RETRIES,
    RETRIES_CONF,
    size,
    whole_number,
)
from delta_ds.spark.engines.connect import kernel_rows, log_calls
from delta_ds.spark.engines.connect.expressions import alias_of
from delta_ds.spark.engines.connect.kernel_rows import text_of
from delta_ds.spark.engines.seam.expressions import source_text
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.kernel.commands.merge.clauses import Do, When
    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.engines.connect.connect_bridge import ServerLog

# What the kernel raises of what it cannot do as Spark does, before anything is written.
_REFUSALS = (
    PredicateError,
    SchemaError,
    UnsupportedFeatureError,
    InvariantViolationError,
    InvalidOptionError,
)
# Settings that give expressions another meaning: those of this prefix, and others unless they are so.
_LEGACY = "spark.sql.legacy."
_USUAL = {
    "spark.sql.decimalOperations.allowPrecisionLoss": "TRUE",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
_FAILED_AT_SERVER = "PYTHON_DATA_SOURCE_ERROR"
_LOCAL = re.compile(r"local(\[.*\])?")


_Value = TypeVar("_Value")


class _LeftToSpark(Exception):
    """Why the kernel does not do a command."""


class KernelCommand:
    """A command of a client of a server of others.

    Parameters
    ----------
    handle, log
        The table.
    operation
        `DELETE`, `UPDATE` or `MERGE`.
    txn
        What it counts as.
    """

    def __init__(self, handle: Handle, log: ServerLog, operation: str, txn: tuple[str, int] | None) -> None:
        self._handle, self._log, self._operation, self._txn = handle, log, operation, txn

    def change(
        self, condition: object, assignments: Mapping[Any, object] | None
    ) -> tuple[int | None, ...] | None:
        """DELETE, or UPDATE: the number of rows; None: the kernel does not do it, and nothing was written."""

        def send() -> CommandSettings:
            predicate = None if condition is None else self._tree(condition)
            settings = self._settings()
            text = None if condition is None else source_text(condition)
            if self._operation == DELETE.name:
                self._log.run(kernel_rows.delete_in_kernel, predicate, settings, text)
            else:
                updates = self._values(assignments or {}, self._name, self._value)
                self._log.run(kernel_rows.update_in_kernel, updates, predicate, settings, text)
            return settings

        sent = self._unless_refused(send)
        metric = "numDeletedRows" if self._operation == DELETE.name else "numUpdatedRows"
        return None if sent is None else (self._counts(sent, metric)[0],)

    def merge(
        self,
        source: DataFrame,
        condition: object,
        clauses: Iterable[tuple[When, Do, object, Mapping[Any, object] | None]],
    ) -> tuple[int | None, ...] | None:
        """MERGE: rows affected, updated, deleted and inserted; None as of `change`."""
        spark = self._handle.spark

        def send() -> CommandSettings:
            request, schema = self._request(source, condition, clauses)
            most = size(spark, MERGE_SOURCE_CONF, MERGE_SOURCE_SIZE)
            if not most:
                raise _LeftToSpark(f"{MERGE_SOURCE_CONF} is 0")
            # Before the source, which may be made of the table, is read: what others commit from now on counts.
            version = self._log.ask(log_calls.newest_version)
            settings = replace(self._settings(), version=version, retries=0, reads_more=True)
            request = replace(request, settings=settings)
            self._log.run_on(source, most, kernel_rows.merge_in_kernel, request, schema)
            return settings

        sent = self._unless_refused(send)
        if sent is None:
            return None
        counts = self._counts(sent, *(f"numTargetRows{kind}" for kind in ("Updated", "Deleted", "Inserted")))
        return (sum(count or 0 for count in counts), *counts)

    def _unless_refused(self, send: Callable[[], CommandSettings]) -> CommandSettings | None:
        """What was sent; None where it was refused. Once it is done nothing in here may fail."""
        from pyspark.errors import AnalysisException, PySparkException

        try:
            return send()
        except _LeftToSpark as error:
            reason = str(error)
        except DeltaError as error:
            if not isinstance(error, _REFUSALS) and error.condition != COMMAND_NEEDS_SPARK.name:
                raise
            reason = error.text
        except PySparkException as error:
            # A failed commit is an AnalysisException too, and then nothing is known of the table.
            analysed = isinstance(error, AnalysisException) and error.getCondition() != _FAILED_AT_SERVER
            if not analysed and RESULTS_BOUND not in str(error):
                raise
            reason = str(error)
        ROWS_FOUND_BY_SPARK.log(table=self._handle.where, operation=self._operation, reason=redacted(reason))
        return None

    # --- what it is asked to do

    def _settings(self) -> CommandSettings:
        spark = self._handle.spark
        given = all_settings(spark)
        facts = facts_of(spark, given)
        if self._txn is not None or facts.txn is not None:
            raise _LeftToSpark("the command counts as a transaction")
        if not facts.ansi or facts.case_sensitive or facts.command_assignment != ANSI_POLICY:
            raise _LeftToSpark("settings of the session give expressions another meaning")
        meanings = {name for name in given if name.startswith(_LEGACY)}
        meanings |= {name for name, usual in _USUAL.items() if str(given.get(name, usual)).upper() != usual}
        if meanings:
            raise _LeftToSpark(f"expressions may have another meaning by {', '.join(sorted(meanings))}")
        most = size(spark, LOCAL_OPTIMIZE_CONF, LOCAL_OPTIMIZE_SIZE)
        if not most:
            raise _LeftToSpark(f"{LOCAL_OPTIMIZE_CONF} is 0")
        local = _LOCAL.fullmatch(str(given.get("spark.master", "")))
        return CommandSettings(
            timezone=facts.settings[TIME_ZONE],
            user_metadata=facts.settings.get(USER_METADATA.full_name),
            engine_info=engine_info(),
            retries=whole_number(spark, RETRIES_CONF, RETRIES),
            facts=facts,
            reads_more=conflict_detection(facts.settings.get(CONFLICT_DETECTION)) == BY_FILES,
            # Else executors share the work.
            most_bytes=None if local else most,
            transaction_id=str(uuid.uuid4()),
        )

    def _text(self, source: object) -> str:
        """What was given as SQL."""
        from pyspark.sql import Column
        from pyspark.sql import functions as F

        if isinstance(source, str):
            return source
        spark = self._handle.spark
        text = text_of(source if isinstance(source, Column) else F.lit(source), spark)
        if text is None:
            raise _LeftToSpark(f"an expression of Spark alone: {source_text(source)}")
        return text

    def _tree(self, source: object) -> Expression:
        alias = None if self._operation == MERGE.name else self._handle.alias
        found = parsed_text(self._text(source), alias)
        if not found or any(map(moves, found)):
            raise _LeftToSpark(f"an expression of Spark alone: {source_text(source)}")
        return found[0]

    def _value(self, source: object) -> str | Expression:
        is_default = isinstance(source, str) and source.strip().upper() == "DEFAULT"
        return str(source) if is_default else self._tree(source)

    def _name(self, name: object) -> str:
        """The column that gets a value, without the table's alias."""
        if not isinstance(name, str):
            raise _LeftToSpark("a column that a Column names")
        path, alias = parse_path(name), self._handle.alias
        qualified = alias is not None and len(path) > 1 and path[0].lower() == alias.lower()
        return quote(path[1:] if qualified else path)

    @staticmethod
    def _values(
        assignments: Mapping[Any, object],
        name_of: Callable[[object], str],
        value_of: Callable[[object], _Value],
    ) -> dict[str, _Value]:
        """What columns get; one that gets two values Spark refuses."""
        values = {name_of(name): value_of(value) for name, value in assignments.items()}
        if len({name.lower() for name in values}) < len(assignments):
            raise _LeftToSpark("a column gets two values")
        return values

    def _request(
        self,
        source: DataFrame,
        condition: object,
        clauses: Iterable[tuple[When, Do, object, Mapping[Any, object] | None]],
    ) -> tuple[MergeRequest, StructType]:
        """The MERGE without its settings, and the source's columns."""
        texts: list[object] = [condition]
        found = []
        for when, do, taken, assignments in clauses:
            texts += [*([] if taken is None else [taken]), *(assignments or {}).values()]
            values = None
            if assignments is not None:
                written = self._values(assignments, self._name, self._text)
                # The kernel knows the alias of a merge itself.
                values = dict(zip(map(str, assignments), written.values(), strict=True))
            found.append(Clause(when, do, None if taken is None else self._text(taken), values))
        with delta_errors():
            schema = from_spark(source.schema)
        if not all(compares_by_bytes(field) for _, field in walk(schema)):
            raise _LeftToSpark("columns of the source whose texts compare in a way of their own")
        alias = alias_of(source)
        aliases = {name.lower() for name in (alias, self._handle.alias) if name}
        trees = [tree for tree in map(self._value, texts) if not isinstance(tree, str)]
        # The first name may be that of a table or view, which only Spark knows.
        paths = {column.path for tree in trees for column in columns(tree) if len(column.path) > 1}
        if any(path[0].lower() not in aliases for path in paths):
            raise _LeftToSpark("names in front of columns that may be names of tables or of columns")
        return (
            MergeRequest(
                self._text(condition),
                tuple(found),
                source_alias=alias or f"{HIDDEN}source",
                target_alias=self._handle.alias or f"{HIDDEN}target",
            ),
            schema,
        )

    # --- what came of it

    def _counts(self, settings: CommandSettings, *names: str) -> Sequence[int | None]:
        """Metrics of the commit; None where the log does not say, 0 where there is no commit."""
        assert settings.transaction_id is not None  # by which the commit is found
        metrics = self._log.ask(log_calls.metrics_of, settings.transaction_id)
        if metrics is None:
            return [0 for _ in names]
        return [None if metrics.get(name) is None else int(metrics[name]) for name in names]
