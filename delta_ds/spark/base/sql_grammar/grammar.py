"""The grammar of Delta's own statements: text to a record, or nothing where the text is Spark's.

As in delta-spark, a text is tried here first, and Spark's parser has what is not taken. Verbs that Spark does not have
are taken for good, so what is wrong behind them is said here.

Source: `DeltaSqlBase.g4` and `DeltaSqlParser` of delta-spark 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from delta_ds.spark.base.sql_grammar.statements import (
    AddConstraint,
    Clone,
    ClusterBy,
    Convert,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    Generate,
    Name,
    Optimize,
    Reorg,
    Restore,
    SqlText,
    Statement,
    SyncIdentity,
    UpgradeUniform,
    Vacuum,
)
from delta_ds.spark.base.sql_grammar.tokens import BLANKS, Parameters, SqlSyntaxError, Tokens


def _then(words: str) -> str:
    """A pattern: these words behind space, or a comment in which nobody looks any further."""
    return rf"(?:[\r\n{BLANKS}]*(?:/\*|--)|[\r\n{BLANKS}]+{words})"


def _word(words: str) -> str:
    return rf"(?:{words})(?![A-Za-z0-9_])"


# A pattern to look for in a text, the same in Python and Java: what has no match is none of the statements here. A
# statement begins where the text does, or behind a comment, so behind the end of a line or of brackets. It takes a
# time linear in the text's length.
HEADS = (
    rf"(?:\A|[\r\n]|\*/)[{BLANKS}]*(?i:{_word('optimize|vacuum|reorg|restore|convert|generate')}"
    rf"|desc(?:ribe)?{_then(_word('history|detail'))}"
    rf"|alter{_then(_word('table'))}"
    rf"|replace{_then(_word('table'))}"
    rf"|create{_then('(?:' + _word('table') + '|or' + _then('replace' + _then(_word('table'))) + ')')})"
    # Of INSERT, behind its target.
    rf"|(?i:(?<![A-Za-z0-9_])replace{_then(_word('using|on'))})"
)


def parse(text: str, parameters: Parameters | None = None) -> Statement | None:
    """Read a statement that Delta adds to Spark's SQL.

    Parameters
    ----------
    text
        One statement, with comments and semicolons around it or not.
    parameters
        SQL literals for the markers in it: by name for `:name`, in order for `?`.

    Returns
    -------
    Statement | None
        The record of the statement; None where it is for Spark's parser.

    Raises
    ------
    SqlSyntaxError
        It begins as no statement of Spark does, and is wrong.

    >>> parse("DESCRIBE HISTORY sales.orders LIMIT 3")
    DescribeHistory(table=('sales', 'orders'), limit=3)
    >>> parse("DESCRIBE EXTENDED sales.orders") is None
    True
    """
    tokens = _Statement(text, parameters)
    verb = next((verb for verb in _VERBS if tokens.follows(*verb)), None)
    if verb is None:
        return None
    try:
        tokens.take(*verb)
        statement = _VERBS[verb](tokens)
        if statement is not None:
            tokens.end()
    except SqlSyntaxError:
        if tokens.ours:
            raise
        return None
    return statement


class _Statement(Tokens):
    """The tokens of a statement, and whether it can no longer be one of Spark's."""

    ours = False


def _optimize(tokens: _Statement) -> Optimize | None:
    if not _is_verb(tokens):
        return None
    table = tokens.table(path=True)
    full = tokens.take("FULL")
    where = tokens.until(("ZORDER", "BY")) if tokens.take("WHERE") else None
    zorder_by = tokens.names(brackets=False) if tokens.take("ZORDER", "BY") else ()
    return Optimize(table, full, where, zorder_by)


def _reorg(tokens: _Statement) -> Reorg | UpgradeUniform | None:
    if not _is_verb(tokens):
        return None
    tokens.need("TABLE")
    table = tokens.table()
    where = tokens.until(("APPLY", "(")) if tokens.take("WHERE") else None
    tokens.need("APPLY", "(")
    if where is None and tokens.take("UPGRADE"):
        tokens.need("UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
        version = tokens.integer()
        tokens.need(")", ")")
        return UpgradeUniform(table, version)
    tokens.need("PURGE", ")")
    return Reorg(table, where)


def _vacuum(tokens: _Statement) -> Vacuum | None:
    if not _is_verb(tokens):
        return None
    table = tokens.table(path=True)
    retain_hours, dry_run, inventory = None, False, None
    mode: Literal["FULL", "LITE"] = "FULL"
    said: set[str] = set()
    while True:
        start = tokens.token().start
        if tokens.take("LITE"):
            clause, mode = "LITE/FULL", "LITE"
        elif tokens.take("FULL"):
            clause, mode = "LITE/FULL", "FULL"
        elif tokens.take("USING"):
            clause, inventory = "INVENTORY", _inventory(tokens)
        elif tokens.take("RETAIN"):
            clause, retain_hours = "RETAIN", tokens.number()
            tokens.need("HOURS")
        elif tokens.take("DRY"):
            clause, dry_run = "DRY RUN", True
            tokens.need("RUN")
        else:
            break
        if clause in said:
            raise SqlSyntaxError(
                "DUPLICATE_CLAUSES",
                start,
                f"Found duplicate clauses: {clause}. Please, remove one of them",
                clauseName=clause,
            )
        said.add(clause)
    if mode == "LITE" and inventory is not None:
        raise _not_allowed("Inventory option is not compatible with LITE", inventory.offset)
    return Vacuum(table, retain_hours, dry_run, mode, inventory)


def _inventory(tokens: _Statement) -> SqlText:
    tokens.need("INVENTORY")
    if tokens.take("("):
        query = tokens.until()
        tokens.need(")")
        return query
    start = tokens.token().start
    quoted = (f"`{part.replace('`', '``')}`" for part in tokens.table())
    return SqlText("SELECT * FROM " + ".".join(quoted), start)


def _describe(tokens: _Statement) -> DescribeHistory | DescribeDetail | None:
    # Spark would describe the column `t` of a table `history`, which DESCRIBE history.t and others still do.
    if tokens.take("DETAIL"):
        tokens.ours = tokens.token().kind == "string"
        return DescribeDetail(tokens.table(path=True))
    if tokens.take("HISTORY"):
        tokens.ours = tokens.token().kind == "string"
        table = tokens.table(path=True)
        tokens.ours = tokens.ours or tokens.follows("LIMIT")
        return DescribeHistory(table, tokens.integer() if tokens.take("LIMIT") else None)
    return None


def _restore(tokens: _Statement) -> Restore | None:
    if not _is_verb(tokens):
        return None
    tokens.take("TABLE")
    table = tokens.table()
    tokens.take("TO")
    version, timestamp = _time_travel(tokens)
    if version is None and timestamp is None:
        tokens.fail("VERSION AS OF or TIMESTAMP AS OF was expected")
    return Restore(table, version, timestamp)


def _time_travel(tokens: _Statement) -> tuple[int | None, str | None]:
    """The version or the timestamp of a clause, where there is one."""
    asked = tokens.take("FOR")
    if tokens.take("VERSION") or tokens.take("SYSTEM_VERSION"):
        tokens.need("AS", "OF")
        if tokens.token().kind != "string":
            return tokens.integer(), None
        text = tokens.string().strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            tokens.at -= 1
            tokens.fail("the number of a version was expected")
        return int(text), None
    if tokens.take("TIMESTAMP") or tokens.take("SYSTEM_TIME"):
        tokens.need("AS", "OF")
        return None, tokens.string()
    if asked:
        tokens.fail("VERSION AS OF or TIMESTAMP AS OF was expected")
    return None, None


def _convert(tokens: _Statement) -> Convert | None:
    if not _is_verb(tokens):
        return None
    tokens.need("TO", "DELTA")
    table = tokens.table()
    statistics = not tokens.take("NO")
    if not statistics:
        tokens.need("STATISTICS")
    columns = None
    if tokens.take("PARTITIONED"):
        tokens.need("BY", "(")
        columns = tokens.until()
        tokens.need(")")
    return Convert(table, statistics, columns)


def _generate(tokens: _Statement) -> Generate | None:
    if not _is_verb(tokens):
        return None
    mode = tokens.part()
    tokens.need("FOR", "TABLE")
    return Generate(mode, tokens.table())


def _alter(tokens: _Statement) -> Statement | None:
    table = tokens.name()
    if tokens.take("ADD", "CONSTRAINT"):
        name = tokens.part()
        tokens.need("CHECK", "(")
        expression = tokens.until()
        tokens.need(")")
        return AddConstraint(table, name, expression)
    if tokens.take("DROP", "CONSTRAINT"):
        if_exists = tokens.take("IF", "EXISTS")
        return DropConstraint(table, tokens.part(), if_exists)
    if tokens.take("DROP", "FEATURE"):
        tokens.ours = True
        feature = tokens.string() if tokens.token().kind == "string" else tokens.part()
        truncate_history = tokens.take("TRUNCATE")
        if truncate_history:
            tokens.need("HISTORY")
        return DropFeature(table, feature, truncate_history)
    if tokens.take("CLUSTER", "BY"):
        return ClusterBy(table, () if tokens.take("NONE") else tokens.names(brackets=True))
    if tokens.take("ALTER") or tokens.take("CHANGE"):
        return _sync_identity(tokens, table)
    return None


def _sync_identity(tokens: _Statement, table: Name) -> SyncIdentity | None:
    if not tokens.follows("COLUMN", "SYNC", "IDENTITY"):
        tokens.take("COLUMN")
    column = tokens.name()
    if not tokens.take("SYNC"):
        return None
    tokens.ours = True
    tokens.need("IDENTITY")
    return SyncIdentity(table, column)


def _clone(mode: Literal["create", "replace", "create_or_replace"]) -> Callable[[_Statement], Clone | None]:
    def rest(tokens: _Statement) -> Clone | None:
        if_not_exists = mode == "create" and tokens.take("IF", "NOT", "EXISTS")
        target = tokens.name()
        shallow = tokens.take("SHALLOW", "CLONE")
        if not shallow and not tokens.take("DEEP", "CLONE"):
            return None
        tokens.ours = True
        source = tokens.table()
        version, timestamp = _time_travel(tokens)
        properties = properties_in(tokens) if tokens.take("TBLPROPERTIES") else {}
        location = tokens.string() if tokens.take("LOCATION") else None
        return Clone(target, source, version, timestamp, mode, if_not_exists, properties, location, shallow)

    return rest


def properties_in(tokens: Tokens) -> dict[str, str]:
    """A list of names and values in parentheses."""
    tokens.need("(")
    found: dict[str, str] = {}
    while True:
        start = tokens.token().start
        key = tokens.string() if tokens.token().kind == "string" else ".".join(tokens.name())
        if key in found:
            raise SqlSyntaxError(
                "DUPLICATE_KEY", start, f"Found duplicate keys `{key}`", keyColumn=f"`{key}`"
            )
        if tokens.follows(",") or tokens.follows(")"):
            raise _not_allowed(f"Values must be specified for key(s): [{key}]", start)
        tokens.take("=")
        found[key] = _property_value(tokens)
        if not tokens.take(","):
            tokens.need(")")
            return found


def _property_value(tokens: Tokens) -> str:
    token = tokens.token()
    if token.kind == "string":
        return tokens.string()
    if token.kind != "number" and not (tokens.follows("TRUE") or tokens.follows("FALSE")):
        tokens.fail("a string, a number, TRUE or FALSE was expected")
    tokens.at += 1
    return token.text.lower() if token.kind == "word" else token.text


def _is_verb(tokens: _Statement) -> bool:
    """Whether the word before is the verb of a statement, and not the label of a block in a script."""
    tokens.ours = not tokens.follows(":")
    return tokens.ours


def _not_allowed(message: str, offset: int) -> SqlSyntaxError:
    return SqlSyntaxError(
        "_LEGACY_ERROR_TEMP_0035", offset, f"Operation not allowed: {message}", message=message
    )


_VERBS: dict[tuple[str, ...], Callable[[_Statement], Statement | None]] = {
    ("OPTIMIZE",): _optimize,
    ("REORG",): _reorg,
    ("VACUUM",): _vacuum,
    ("DESCRIBE",): _describe,
    ("DESC",): _describe,
    ("RESTORE",): _restore,
    ("CONVERT",): _convert,
    ("GENERATE",): _generate,
    ("ALTER", "TABLE"): _alter,
    ("CREATE", "TABLE"): _clone("create"),
    ("REPLACE", "TABLE"): _clone("replace"),
    ("CREATE", "OR", "REPLACE", "TABLE"): _clone("create_or_replace"),
}
