"""DELETE, UPDATE, MERGE and INSERT from their text, for sessions whose parser is out of reach.

Conditions and values stay text. What this does not understand is nothing at all, so Spark says what is wrong with it.

Source: Spark's `SqlBaseParser.g4`.
"""

from __future__ import annotations

from typing import Literal

from delta_ds.kernel.format.expressions.tree import quote_name
from delta_ds.kernel.format.options.write import with_call
from delta_ds.spark.base.schema import dotted
from delta_ds.spark.base.sql_grammar.grammar import properties_in
from delta_ds.spark.base.sql_grammar.literals import sql_literal
from delta_ds.spark.base.sql_grammar.statements import (
    Assignments,
    Delete,
    Insert,
    Merge,
    MergeClause,
    Name,
    RowStatement,
    SqlText,
    Update,
)
from delta_ds.spark.base.sql_grammar.tokens import Parameters, SqlSyntaxError, Tokens

_WHENS = (("WHEN", "MATCHED"), ("WHEN", "NOT", "MATCHED"))
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
# Where a query may begin inside a condition, Spark's parser would know better.
_QUERY_BEGINS = tuple(start for word in _QUERY if word != "FROM" for start in ((word,), ("(", word)))
# What may stand behind the target of an INSERT, and is no alias.
_BEHIND_TARGET = ("BY", "REPLACE", "PARTITION", "IF", "(")


def parse_dml(text: str, parameters: Parameters | None = None) -> RowStatement | None:
    """Read a statement that changes rows.

    Parameters
    ----------
    text
        One statement, with comments and semicolons around it or not.
    parameters
        SQL literals for the markers in it: by name for `:name`, in order for `?`.

    Returns
    -------
    RowStatement | None
        The record; None for every other statement, and for one that Spark's parser refuses or should look at.

    Raises
    ------
    SqlSyntaxError
        A marker has no value, of the condition UNBOUND_SQL_PARAMETER.

    >>> parse_dml("DELETE FROM delta.`/p` AS t WHERE t.id < 3")
    Delete(target=('delta', '/p'), alias='t', where=SqlText(text='t.id < 3', offset=34), ctes=None)
    """
    tokens = Tokens(text, parameters)
    try:
        ctes = _ctes(tokens)
        statement = _statement(tokens, ctes)
        if statement is not None:
            tokens.end()
    except SqlSyntaxError as error:
        if error.condition == "UNBOUND_SQL_PARAMETER":
            raise
        return None
    return statement


def _ctes(tokens: Tokens) -> SqlText | None:
    start = tokens.token().start
    if not tokens.take("WITH"):
        return None
    tokens.take("RECURSIVE")
    while True:
        tokens.part()
        if tokens.follows("("):
            tokens.names(brackets=True)
        tokens.take("AS")
        tokens.need("(")
        tokens.until()
        end = tokens.token().end
        tokens.need(")")
        if not tokens.take(","):
            return tokens.between(start, end)


def _statement(tokens: Tokens, ctes: SqlText | None) -> RowStatement | None:
    if tokens.take("DELETE", "FROM"):
        target, alias = tokens.name(), _alias(tokens, "WHERE")
        where = tokens.until() if tokens.take("WHERE") else None
        return Delete(target, alias, where, ctes)
    if tokens.take("UPDATE"):
        target, alias = tokens.name(), _alias(tokens, "SET")
        tokens.need("SET")
        assignments = _assignments(tokens, ("WHERE",))
        where = tokens.until() if tokens.take("WHERE") else None
        return Update(target, assignments, alias, where, ctes)
    if tokens.take("MERGE"):
        return _merge(tokens, ctes)
    if tokens.take("INSERT"):
        return _insert(tokens, ctes)
    return None


def _alias(tokens: Tokens, *keywords: str) -> str | None:
    """An alias, unless one of these keywords, or the end, is next."""
    if tokens.take("AS"):
        return tokens.part()
    if tokens.token().kind not in ("word", "quoted") or any(tokens.follows(word) for word in keywords):
        return None
    return tokens.part()


def _assignments(tokens: Tokens, *stops: tuple[str, ...]) -> Assignments:
    found = []
    while True:
        column = tokens.name()
        tokens.need("=")
        tokens.take("=")
        found.append((column, tokens.until((",",), *stops)))
        if not tokens.take(","):
            return tuple(found)


# --- MERGE


def _merge(tokens: Tokens, ctes: SqlText | None) -> Merge:
    schema_evolution = tokens.take("WITH", "SCHEMA", "EVOLUTION")
    tokens.need("INTO")
    target, alias = tokens.name(), _alias(tokens, "USING")
    tokens.need("USING")
    source, source_name = _source(tokens)
    tokens.need("ON")
    on = tokens.until(*_WHENS)
    clauses = []
    while tokens.take("WHEN"):
        clauses.append(_clause(tokens))
    return Merge(target, source, source_name, on, tuple(clauses), alias, schema_evolution, ctes)


def _source(tokens: Tokens) -> tuple[SqlText, str | None]:
    first = tokens.token()
    if tokens.take("("):
        tokens.until()
        last = tokens.token()
        tokens.need(")")
        name = None
    else:
        name = tokens.name()[-1]
        last = tokens.token(-1)
    before = tokens.at
    alias = _alias(tokens, "ON")
    if tokens.at > before:
        last = tokens.token(-1)
    return tokens.between(first.start, last.end), alias or name


def _clause(tokens: Tokens) -> MergeClause:
    when: Literal["matched", "not_matched", "not_matched_by_source"] = "matched"
    if tokens.take("NOT"):
        when = "not_matched"
    tokens.need("MATCHED")
    if when == "not_matched" and tokens.take("BY"):
        if tokens.take("SOURCE"):
            when = "not_matched_by_source"
        else:
            tokens.need("TARGET")
    condition = tokens.until(("THEN",)) if tokens.take("AND") else None
    tokens.need("THEN")
    if when == "not_matched":
        tokens.need("INSERT")
        return MergeClause(when, "insert", condition, None if tokens.take("*") else _values(tokens))
    if tokens.take("DELETE"):
        return MergeClause(when, "delete", condition)
    tokens.need("UPDATE", "SET")
    if when == "matched" and tokens.take("*"):
        return MergeClause(when, "update", condition)
    return MergeClause(when, "update", condition, _assignments(tokens, *_WHENS))


def _values(tokens: Tokens) -> Assignments:
    columns = tokens.names(brackets=True)
    tokens.need("VALUES", "(")
    values = [tokens.until((",",))]
    while tokens.take(","):
        values.append(tokens.until((",",)))
    if len(values) != len(columns):
        tokens.fail("as many values as columns were expected")
    tokens.need(")")
    return tuple(zip(columns, values, strict=True))


# --- INSERT


def insert_overwrite(statement: Insert) -> str:
    """`INSERT ... REPLACE USING` and `REPLACE ON` as a statement of Spark's grammar, which has options for the two.

    >>> insert = parse_dml("INSERT INTO t REPLACE USING (id) SELECT * FROM s")
    >>> insert_overwrite(insert)
    "INSERT OVERWRITE TABLE `t` WITH ('replaceUsing' = 'id') SELECT * FROM s"
    """
    listed = ", ".join(
        f"{sql_literal(name)} = {sql_literal(text)}" for name, text in insert_options(statement).items()
    )
    words = [
        "" if statement.ctes is None else str(statement.ctes),
        "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE"
        if statement.schema_evolution
        else "INSERT OVERWRITE TABLE",
        dotted(statement.target),
        f"WITH ({listed})",
        "BY NAME" if statement.by_name else "",
        str(statement.query),
    ]
    return " ".join(filter(None, words))


def insert_options(statement: Insert) -> dict[str, str]:
    """The options of an INSERT: those that it lists, and those that its other words stand for.

    Raises
    ------
    InvalidOptionError
        One is given by both.
    """
    options = dict(statement.options)
    if statement.replace_using:
        names = (".".join(name) for name in statement.replace_using)
        options = with_call(options, "replaceUsing", ", ".join(map(quote_name, names)))
    if statement.replace_on is not None:
        options = with_call(options, "replaceOn", str(statement.replace_on))
        options = with_call(options, "targetAlias", statement.alias or statement.target[-1])
    return options


def _replacing(tokens: Tokens, target: Name, evolution: bool, ctes: SqlText | None) -> Insert | None:
    """`[AS a] [WITH (...)] [BY NAME] REPLACE USING (a, b) | ON condition` and a query; of all else nothing is read.

    Source: Databricks SQL, `INSERT INTO`; Spark's `SqlBaseParser.g4`, `insertIntoReplaceUsing`.
    """
    before = tokens.at
    ends = any(tokens.follows(word) for word in (*_QUERY, *_BEHIND_TARGET))
    alias = None if ends else _alias(tokens)
    options = properties_in(tokens) if tokens.follows("WITH", "(") and tokens.take("WITH") else {}
    by_name = tokens.take("BY", "NAME")
    using: tuple[Name, ...] = ()
    on = None
    if alias is None and tokens.take("REPLACE", "USING"):
        using = tokens.names(brackets=True)
    elif tokens.take("REPLACE", "ON"):
        on = tokens.until(*_QUERY_BEGINS)
    else:
        tokens.at = before
        return None
    return Insert(
        target,
        _query_with_alias(tokens),
        by_name=by_name,
        schema_evolution=evolution,
        ctes=ctes,
        options=options,
        replace_using=using,
        replace_on=on,
        alias=alias,
    )


def _query_with_alias(tokens: Tokens) -> SqlText:
    """A query, or one in brackets with a name, by which the condition of `REPLACE ON` may call its rows."""
    before, first = tokens.at, tokens.token().start
    if tokens.take("("):
        tokens.until()
        tokens.need(")")
        if _alias(tokens, "UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT") is not None:
            whole = tokens.between(first, tokens.token(-1).end)
            return SqlText(f"SELECT * FROM {whole}", whole.offset)
    tokens.at = before
    return _query(tokens)


def _insert(tokens: Tokens, ctes: SqlText | None) -> Insert:
    schema_evolution = tokens.take("WITH", "SCHEMA", "EVOLUTION")
    overwrite = tokens.take("OVERWRITE")
    if not overwrite:
        tokens.need("INTO")
    tokens.take("TABLE")
    target = tokens.name()
    if not overwrite and (replacing := _replacing(tokens, target, schema_evolution, ctes)) is not None:
        return replacing
    options = properties_in(tokens) if tokens.follows("WITH", "(") and tokens.take("WITH") else {}
    if not overwrite and tokens.take("REPLACE", "WHERE"):
        # Where a query may begin inside a condition, Spark's parser would know better.
        replace_where = tokens.until(*((word,) for word in _QUERY if word != "FROM"))
        return Insert(
            target,
            _query(tokens),
            replace_where=replace_where,
            schema_evolution=schema_evolution,
            ctes=ctes,
            options=options,
        )
    partition = _partition(tokens) if tokens.take("PARTITION") else ()
    if_not_exists = tokens.take("IF", "NOT", "EXISTS")
    by_name = tokens.take("BY", "NAME")
    named = tokens.follows("(") and not any(tokens.follows("(", word) for word in (*_QUERY, "("))
    columns = tokens.names(brackets=True) if named and not by_name else ()
    return Insert(
        target,
        _query(tokens),
        overwrite,
        partition,
        if_not_exists,
        columns,
        by_name,
        schema_evolution=schema_evolution,
        ctes=ctes,
        options=options,
    )


def _partition(tokens: Tokens) -> tuple[tuple[Name, SqlText | None], ...]:
    tokens.need("(")
    found: list[tuple[Name, SqlText | None]] = []
    while True:
        column = tokens.part()
        if column.lower() in {known.lower() for (known,), _ in found}:
            tokens.fail("each column once was expected")
        value = None
        if tokens.take("="):
            if tokens.follows("DEFAULT"):
                tokens.fail("a value was expected, which DEFAULT is not here")
            value = tokens.until((",",))
        found.append(((column,), value))
        if not tokens.take(","):
            tokens.need(")")
            return tuple(found)


def _query(tokens: Tokens) -> SqlText:
    if not any(tokens.follows(word) for word in (*_QUERY, "(")):
        tokens.fail("a query was expected")
    return tokens.until()
