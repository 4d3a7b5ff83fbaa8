"""The replacement of `spark.sql` in sessions of Spark Connect.

A server that has a catalog for Delta tables gets every text as it is. For any other one, statements of Delta's own and
those that change rows of tables by path are read here and become commands, and tables by path in queries are read by
the data source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_ds.conditions.expressions import (
    DUPLICATE_CLAUSES,
    DUPLICATE_KEY,
    OPERATION_NOT_ALLOWED_IN_TEXT,
    UNBOUND_SQL_PARAMETER,
)
from delta_ds.conditions.schema import STATEMENT_UNREADABLE
from delta_ds.conditions.session import VIEW_OVER_PATH_NOT_ALLOWED
from delta_ds.exceptions import InvalidArgumentError, NotADeltaTableError
from delta_ds.kernel.format.operations import TRUNCATE
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.base.kinds.frames import frame_of, nothing
from delta_ds.spark.base.schema import dotted
from delta_ds.spark.base.session_conf import CATALOG_CONF
from delta_ds.spark.base.sql_grammar.dml_grammar import parse_dml
from delta_ds.spark.base.sql_grammar.grammar import HEADS, parse
from delta_ds.spark.base.sql_grammar.literals import sql_parameters
from delta_ds.spark.base.sql_grammar.statements import (
    Delete,
    Insert,
    Merge,
    MergeClause,
    RowStatement,
    SqlText,
    Statement,
    Update,
)
from delta_ds.spark.base.sql_grammar.tokens import Parameters, SqlSyntaxError, Tokens
from delta_ds.spark.base.table_names import path_of_parts
from delta_ds.spark.commands.delete import run_truncate
from delta_ds.spark.commands.handle import open_name
from delta_ds.spark.engines import monkeypatch
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log
from delta_ds.spark.session import integration
from delta_ds.spark.session.writes.request import describe_existing
from delta_ds.spark.sql.client_insert import insert
from delta_ds.spark.sql.client_references import Call, find_references, with_ctes
from delta_ds.spark.sql.statements import columns_of, execute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.exceptions import PredicateError
    from delta_ds.spark.base.sql_grammar.statements import Assignments
    from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder


# --- dELETE, UPDATE and MERGE of a client: their clauses to the commands, which work on Spark Connect


def execute_rows(call: Call, statement: RowStatement) -> DataFrame:
    """Run a statement that changes rows of a table by path.

    Returns
    -------
    DataFrame
        The counts that delta-spark answers; of an INSERT nothing.
    """
    if isinstance(statement, Insert):
        insert(call, statement)
        return nothing(call.spark)
    try:
        table = DeltaTable.forName(call.spark, dotted(statement.target))
    except NotADeltaTableError:
        # Rows are wanted, and not the table alone, so that it is said in other words what is not there.
        ask(open_log(call.spark, path_of_parts(statement.target) or "", {}), describe_existing)
        raise
    if statement.alias is not None:
        table = table.alias(statement.alias)
    if isinstance(statement, Delete):
        return table.delete(_text(statement.where))
    if isinstance(statement, Update):
        return table.update(_text(statement.where), _values(statement.assignments))
    return _merge(call, table, statement)


def _text(text: SqlText | None) -> str | None:
    return None if text is None else str(text)


def _values(assignments: Assignments) -> dict[str, str]:
    return {dotted(column): str(value) for column, value in assignments}


# --- MERGE


def _merge(call: Call, table: DeltaTable, statement: Merge) -> DataFrame:
    source = call.query(with_ctes(statement.ctes, f"SELECT * FROM {statement.source}"))
    if statement.source_name is not None:
        source = source.alias(statement.source_name)
    builder = table.merge(source, str(statement.on))
    if statement.schema_evolution:
        builder = builder.withSchemaEvolution()
    for clause in statement.clauses:
        builder = _add_clause(builder, clause)
    return builder.execute()


def _add_clause(builder: DeltaMergeBuilder, clause: MergeClause) -> DeltaMergeBuilder:
    condition = _text(clause.condition)
    values = None if clause.assignments is None else _values(clause.assignments)
    if clause.when == "not_matched":
        if values is None:
            return builder.whenNotMatchedInsertAll(condition)
        return builder.whenNotMatchedInsert(condition, values)
    if clause.when == "not_matched_by_source":
        if clause.action == "delete":
            return builder.whenNotMatchedBySourceDelete(condition)
        return builder.whenNotMatchedBySourceUpdate(condition, values)
    if clause.action == "delete":
        return builder.whenMatchedDelete(condition)
    if values is None:
        return builder.whenMatchedUpdateAll(condition)
    return builder.whenMatchedUpdate(condition, values)


# --- the replacement of `spark.sql` in sessions of Spark Connect

_OWN = re.compile(HEADS)
_CHANGES_ROWS = re.compile(r"\b(?:DELETE|UPDATE|MERGE|INSERT)\b", re.IGNORECASE)
_MAKES_VIEW = re.compile(r"\bVIEW\b", re.IGNORECASE)
_knows_delta: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def install() -> None:
    """Replace `spark.sql` of Spark Connect."""
    monkeypatch.apply(*_patch())


def uninstall() -> None:
    """Put the original back, once no session of Spark Connect is registered any more."""
    if not integration.installed_sessions(connect=True):
        owner, name, _, _ = _patch()
        monkeypatch.undo(owner, name)


def server_knows_delta(spark: SparkSession) -> bool:
    """Whether the server has a catalog of Delta's, and so the statements too; asked once a session."""
    if spark not in _knows_delta:
        _knows_delta[spark] = "delta" in str(spark.conf.get(CATALOG_CONF, "")).lower()
    return _knows_delta[spark]


def _patch() -> tuple[type, str, Callable[[Any, dict[str, Any]], bool], monkeypatch.Handler]:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    return ConnectSession, "sql", _concerns, _sql


def _concerns(spark: Any, arguments: dict[str, Any]) -> bool:
    text = arguments.get("sqlQuery")
    return isinstance(text, str) and integration.is_installed(spark) and not server_knows_delta(spark)


def _sql(original: Callable[..., Any], spark: Any, arguments: dict[str, Any]) -> DataFrame:
    text, args = arguments["sqlQuery"], arguments.get("args")
    call = Call(spark, args)
    if values := arguments.get("kwargs"):
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter

        formatter = SQLStringFormatter(spark)
        text = formatter.format(text, **values)
        call = Call(spark, args, {name: frame for frame, name in formatter._temp_views})
    found = _run_own(call, text)
    if found is None and _MAKES_VIEW.search(text):
        found = _make_view(call, text)
    return call.query(text) if found is None else found


def _run_own(call: Call, text: str) -> DataFrame | None:
    """Run a statement of Delta's own, or one that changes rows of a table by path; None for any other."""
    if not _OWN.search(text) and not _CHANGES_ROWS.search(text):
        return _truncate(call, text)
    parameters, problem = _parameters(call.args)
    try:
        statement = parse(text, parameters)
        if statement is not None:
            return _answer(call.spark, statement)
        rows = parse_dml(text, parameters)
    except SqlSyntaxError as error:
        raise problem or syntax_error(error, text) from None
    if rows is None or path_of_parts(rows.target) is None:
        return None
    return execute_rows(Call(call.spark, None, call.frames), rows)


def _truncate(call: Call, text: str) -> DataFrame | None:
    """Run TRUNCATE TABLE of a path; None for any other statement, and for partitions, which Spark refuses."""
    tokens = Tokens(text)
    if not tokens.take(TRUNCATE.name, "TABLE"):
        return None
    try:
        name = tokens.name()
        tokens.end()
    except SqlSyntaxError:
        return None
    if path_of_parts(name) is None:
        return None
    run_truncate(open_name(call.spark, dotted(name)))
    return nothing(call.spark)


def _answer(spark: SparkSession, statement: Statement) -> DataFrame:
    found = execute(spark, statement)
    if found is not None and found.columns:
        return found
    columns = columns_of(statement)
    return frame_of(spark, [], columns) if columns else nothing(spark)


def _parameters(args: Any) -> tuple[Parameters | None, InvalidArgumentError | None]:
    """The literals of the values of a call; or why there are none, which matters only if one is asked for."""
    try:
        return sql_parameters(args), None
    except InvalidArgumentError as error:
        return None, error


def _make_view(call: Call, text: str) -> DataFrame | None:
    """Make a view of a query over tables by path; None where Spark can do it.

    Raises
    ------
    UnsupportedOperationError
        The view would be permanent, and the server could not read it by its text.
    """
    tokens = Tokens(text)
    if not tokens.take("CREATE"):
        return None
    replace = tokens.take("OR", "REPLACE")
    everywhere = tokens.take("GLOBAL")
    temporary = tokens.take("TEMP") or tokens.take("TEMPORARY")
    if not tokens.take("VIEW") or not find_references(text):
        return None
    if not temporary:
        raise VIEW_OVER_PATH_NOT_ALLOWED()
    try:
        name = tokens.name()
        columns = tokens.names(brackets=True) if tokens.follows("(") else ()
        tokens.need("AS")
        query = str(tokens.until())
        tokens.end()
    except SqlSyntaxError:
        return None
    rows = call.query(query)
    if columns:
        rows = rows.toDF(*(column[0] for column in columns))
    kind = "GlobalTempView" if everywhere else "TempView"
    getattr(rows, f"createOrReplace{kind}" if replace else f"create{kind}")(name[-1])
    return nothing(call.spark)


_RECORDS = {
    record.name: record
    for record in (
        DUPLICATE_CLAUSES,
        DUPLICATE_KEY,
        OPERATION_NOT_ALLOWED_IN_TEXT,
        STATEMENT_UNREADABLE,
        UNBOUND_SQL_PARAMETER,
    )
}


def syntax_error(error: SqlSyntaxError, text: str) -> PredicateError:
    """The error for a statement that the grammar refuses.

    Parameters
    ----------
    error
        What the grammar says.
    text
        The statement.

    >>> from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError
    >>> print(syntax_error(SqlSyntaxError("PARSE_SYNTAX_ERROR", 9, "a name was expected"), "OPTIMIZE 5").text)
    a name was expected (line 1, pos 9)
    <BLANKLINE>
    == SQL ==
    OPTIMIZE 5
    ---------^^^
    """
    lines = text[: error.offset].splitlines() or [""]
    line, position = (
        (len(lines), len(lines[-1])) if text[: error.offset][-1:] != "\n" else (len(lines) + 1, 0)
    )
    shown = text.splitlines() or [""]
    shown.insert(line, "-" * position + "^^^")
    return _RECORDS[error.condition](
        error.parameters, what=str(error), line=line, position=position, marked="\n".join(shown)
    )
