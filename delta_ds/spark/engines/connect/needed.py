"""What a query of a client needs of our tables, told to the data source that reads them.

Spark hands a Python data source neither the columns of a query nor, up to 4.3, filters that hold for one of its scans
alone. A client has the whole query when it sends it: each read in it gets the names that the query may mean columns by,
and the conditions that all its rows have to fulfil. Reads of one DataFrame get what any of them needs. What is not
understood means that all is read, as of frames that are persistent. Spark evaluates the query as it is.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.kernel.format.expressions.tree import (
    Call,
    Expression,
    conjunction,
    conjuncts,
    without_qualifier,
)
from delta_ds.kernel.format.options.settings import SETTINGS_OPTION
from delta_ds.records import dataclass, replace
from delta_ds.spark.base import wire
from delta_ds.spark.base.query_needs import NEEDED, TARGET_FORMAT, Needed
from delta_ds.spark.base.session_conf import SOURCE_CLASS
from delta_ds.spark.base.table_names import is_ours
from delta_ds.spark.engines.connect.expressions import conditions_in, path_of_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Kinds of relations that hand rows on as they are, but for some of them.
_CHOOSING = frozenset(["limit", "offset", "tail", "sample", "repartition"])
# Names may begin with digits.
_WORD = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
# All columns, but not a product, and not `count(*)`.
_STAR = re.compile(r"(?:^|[,(.]|\bdistinct\b|\ball\b)\s*\*", re.IGNORECASE)
_COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
# Queries; names that are computed; comments, which may stand before a star; names in double quotes, by a setting.
_MORE = re.compile(r"\b(?:select|from|table|values|identifier)\b|/\*|--|\"", re.IGNORECASE)
# `ORDER BY 2`, `ORDER BY ALL`.
_PLACE = re.compile(r"\s*(?:\d+|all)\s*", re.IGNORECASE)
# What a pattern has and a name has not: by a setting, names in backticks are patterns.
_PATTERN = re.compile(r"[^\w\s]")


class _AllColumns(Exception):  # noqa: N818 - not an error
    """An expression whose columns are not known."""


@dataclass(frozen=True)
class _Wanted:
    """What is needed of the rows of a relation.

    Attributes
    ----------
    needed
        None: all columns.
    filters
        Expressions that hold for all rows that count.
    """

    needed: Needed | None = None
    filters: tuple[Expression, ...] = ()


_ALL = _Wanted()
# Reads and what is needed of them, those of the same options together; None: they stay as they are.
_Reads: TypeAlias = "dict[bytes, list[tuple[Any, _Wanted | None]]]"
_TRAVELS = ("versionasof", "timestampasof")
# The ids of the plans of frames that servers keep the rows of.
_persistent: set[int] = set()
_comparing: ContextVar[bool] = ContextVar("_comparing", default=False)


def tell_reads(relation: Any) -> None:
    """Tell the reads of our format in a query what it needs of them.

    Parameters
    ----------
    relation
        `spark.connect.Relation`; is changed.
    """
    found: _Reads = {}
    _tell(relation, _ALL, found)
    for uses in found.values():
        _tell_uses(uses)


def _tell_uses(uses: Sequence[tuple[Any, _Wanted | None]]) -> None:
    """Tell the reads of one DataFrame the same: Spark makes one plan of them then, and they read one version.

    Every query reads the newest one: what is told makes its reads others than those whose plans
    Spark has kept.
    """
    wishes = [wanted for _, wanted in uses if wanted is not None]
    if len(wishes) < len(uses):
        return
    needed: Needed | None = Needed()
    for wanted in wishes:
        if needed is not None:
            more = wanted.needed
            needed = None if more is None else needed.also(more.paths, more.words)
    conditions = [conjunction(list(wanted.filters)) for wanted in wishes]
    filters: list[Expression] = []
    if None not in conditions:
        different = tuple(dict.fromkeys(part for part in conditions if part is not None))
        filters = list(conjuncts(different[0] if len(different) == 1 else Call("or", different)))
    nonce = uuid.uuid4().hex
    for read, _ in uses:
        options = read.data_source.options
        settings = next(name for name in options if name.lower() == SETTINGS_OPTION.lower())
        fixed = read.data_source.format == TARGET_FORMAT or any(name.lower() in _TRAVELS for name in options)
        if fixed and needed is None and not filters:
            return
        told = (needed, filters) if fixed else (needed, filters, nonce)
        options[settings] = json.dumps({**json.loads(options[settings]), NEEDED: wire.encode(told)})


def told(frame: DataFrame) -> DataFrame:
    """A frame of a client whose reads are told, for calls that send it in another form than a query."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    return ConnectFrame(told_plan(frame._plan), frame.sparkSession)  # type: ignore[arg-type]


def told_plan(plan: Any) -> Any:
    """The same for a plan of a client, which stays the one owner of what the server holds for it."""
    return _told_class()(plan)


@cache
def _told_class() -> type:
    """Made once: a class is garbage in a circle, and what it holds would go at any time, as within a call of Spark."""
    from pyspark.sql.connect.plan import LogicalPlan

    class Told(LogicalPlan):
        __slots__ = ("_told",)

        def __init__(self, plan: LogicalPlan) -> None:
            self.__dict__ = plan.__dict__
            self._told = plan

        def plan(self, session: Any) -> Any:
            relation = self._told.plan(session)
            tell_reads(relation)
            return relation

        @property
        def observations(self) -> Any:
            return self._told.observations

    return Told


def persist(original: Callable[..., Any], frame: Any, arguments: dict[str, Any]) -> Any:
    """`DataFrame.persist` of a client, which has queries on the frame find its rows where the server keeps them."""
    kept = original(frame, **arguments)
    _persistent.add(frame._plan._plan_id)
    return kept


def unpersist(original: Callable[..., Any], frame: Any, arguments: dict[str, Any]) -> Any:
    """`DataFrame.unpersist` of a client."""
    _persistent.discard(frame._plan._plan_id)
    return original(frame, **arguments)


def compare(original: Callable[..., Any], frame: Any, arguments: dict[str, Any]) -> Any:
    """`sameSemantics` and `semanticHash` of a client: of what frames are, without what one query needs of them."""
    before = _comparing.set(True)
    try:
        return original(frame, **arguments)
    finally:
        _comparing.reset(before)


def compares() -> bool:
    """Whether plans are sent to be compared."""
    return _comparing.get()


def _tell(relation: Any, wanted: _Wanted, found: _Reads) -> None:
    kind = relation.WhichOneof("rel_type")
    if kind is None:
        return
    content: Any = getattr(relation, kind)
    if relation.common.plan_id in _persistent:
        _note_all(relation, None, found)  # else it is another query to Spark
    elif kind == "read":
        _note_read(content, wanted, found)
    elif kind in _STEPS:
        _STEPS[kind](content, wanted, found)
    elif kind in _CHOOSING:
        # Which rows come through depends on those that are there.
        _tell(content.input, replace(wanted, filters=()), found)
    elif kind == "with_relations":
        _note_all(content, _ALL, found)  # its queries see columns of each other
    else:
        for inner in _relations_in(content):
            _tell(inner, _ALL, found)


def _relations_in(message: Any) -> list[Any]:
    return [part for part in _messages_in(message) if part.DESCRIPTOR.full_name == "spark.connect.Relation"]


def _messages_in(message: Any) -> list[Any]:
    found = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts = [value] if hasattr(value, "ListFields") else value
            found += [part for part in parts if hasattr(part, "ListFields")]
    return found


def _note_all(message: Any, wanted: _Wanted | None, found: _Reads) -> None:
    for part in _messages_in(message):
        if part.DESCRIPTOR.full_name == "spark.connect.Read":
            _note_read(part, wanted, found)
        else:
            _note_all(part, wanted, found)


def reads_in(relation: Any, *, streams: bool = False) -> Iterator[dict[str, str]]:
    """The options of the reads of our tables in a query, `path` among them: of batches, or of streams.

    Not of frames whose rows the server keeps.
    """
    if relation.DESCRIPTOR.full_name == "spark.connect.Read":
        source = relation.data_source
        if relation.HasField("data_source") and relation.is_streaming == streams and _is_ours(source.format):
            yield {**({"path": source.paths[0]} if source.paths else {}), **source.options}
    elif relation.DESCRIPTOR.full_name != "spark.connect.Relation" or (
        relation.common.plan_id not in _persistent
    ):
        for part in _messages_in(relation):
            yield from reads_in(part, streams=streams)


def _note_read(read: Any, wanted: _Wanted | None, found: _Reads) -> None:
    source = read.data_source
    if not read.HasField("data_source") or read.is_streaming or not _is_ours(source.format):
        return
    if wanted is not None and source.schema:
        wanted = _ALL  # which says what is read
    if any(name.lower() == SETTINGS_OPTION.lower() for name in source.options):
        found.setdefault(read.SerializeToString(deterministic=True), []).append((read, wanted))


def _is_ours(name: str) -> bool:
    return is_ours(name) or name in (TARGET_FORMAT, SOURCE_CLASS)


# --- relations


def _filter(content: Any, wanted: _Wanted, found: _Reads) -> None:
    filters = (*wanted.filters, *conditions_in(content.condition))
    _tell(content.input, replace(_with(wanted, [content.condition]), filters=filters), found)


def _project(content: Any, wanted: _Wanted, found: _Reads) -> None:
    stars = [part for part in content.expressions if part.WhichOneof("expr_type") == "unresolved_star"]
    if any(star.unresolved_star.unparsed_target for star in stars):
        # Of a table, or the fields of a column.
        _tell(content.input, _ALL, found)
        return
    if not stars:
        _tell(content.input, _only(content.expressions), found)
        return
    # All columns of which some are needed, and others that are made here.
    made = [part for part in content.expressions if part not in stars]
    _tell(content.input, _with(_loosely(wanted), made), found)


def _aggregate(content: Any, wanted: _Wanted, found: _Reads) -> None:
    plain = content.group_type == type(content).GROUP_TYPE_GROUPBY
    parts = [*content.grouping_expressions, *content.aggregate_expressions]
    _tell(content.input, _only(parts) if plain else _ALL, found)


def _sort(content: Any, wanted: _Wanted, found: _Reads) -> None:
    orders = [order.child for order in content.order]
    below = _with(wanted, orders)
    if any(map(_is_of_places, orders)):
        below = replace(below, needed=None)
    _tell(content.input, below, found)


def _is_of_places(order: Any) -> bool:
    """Whether Spark may take what rows are sorted by for the number of a column, or for all columns."""
    kind = order.WhichOneof("expr_type")
    texts = {"expression_string": "expression", "unresolved_attribute": "unparsed_identifier"}
    text = getattr(getattr(order, kind), texts[kind]) if kind in texts else ""
    return kind == "literal" or _PLACE.fullmatch(text) is not None


def _hint(content: Any, wanted: _Wanted, found: _Reads) -> None:
    below = _with(replace(wanted, filters=()), content.parameters)
    if below.needed is not None:
        # Spark takes texts for names of columns, too.
        texts = [one.literal.string for one in content.parameters if one.literal.HasField("string")]
        below = _Wanted(below.needed.also(words=[name for text in texts for name in path_of_name(text)]))
    _tell(content.input, below, found)


def _alias(content: Any, wanted: _Wanted, found: _Reads) -> None:
    filters = tuple(without_qualifier(part, content.alias) for part in wanted.filters)
    _tell(content.input, replace(wanted, filters=filters), found)


def _join(content: Any, wanted: _Wanted, found: _Reads) -> None:
    below = replace(
        _with(wanted, [content.join_condition] if content.HasField("join_condition") else []), filters=()
    )
    below = _loosely(below)
    if below.needed is not None:
        below = _Wanted(below.needed.also(words=content.using_columns))
    for side in (content.left, content.right):
        _tell(side, below, found)


_STEPS = {
    "filter": _filter, "project": _project, "aggregate": _aggregate, "sort": _sort, "subquery_alias": _alias,
    "join": _join, "hint": _hint,
}  # fmt: skip


def _loosely(wanted: _Wanted) -> _Wanted:
    """The same of rows in which a name may be none of a column: it may be one of the other side, or made above."""
    if wanted.needed is None:
        return _ALL
    words = [name for path in wanted.needed.paths for name in path]
    return _Wanted(Needed(words=(*wanted.needed.words, *words)))


def _only(expressions: Sequence[Any]) -> _Wanted:
    return _with(_Wanted(Needed()), expressions)


def _with(wanted: _Wanted, expressions: Sequence[Any]) -> _Wanted:
    """The same, and the columns of some expressions."""
    if wanted.needed is None:
        return wanted
    paths: list[tuple[str, ...]] = []
    words: list[str] = []
    try:
        for expression in expressions:
            _names(expression, paths, words)
    except _AllColumns:
        return replace(wanted, needed=None)
    return replace(wanted, needed=wanted.needed.also(paths, words))


# --- expressions


def _names(expression: Any, paths: list[tuple[str, ...]], words: list[str]) -> None:
    """Collect the names of columns: those that are known to be, and the words of texts.

    Raises
    ------
    _AllColumns
        It may mean columns that it does not name.
    """
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_attribute":
        if expression.unresolved_attribute.is_metadata_column:
            raise _AllColumns
        paths.append(path_of_name(expression.unresolved_attribute.unparsed_identifier))
    elif kind == "expression_string":
        words += _words(expression.expression_string.expression)
    elif kind in ("unresolved_function", "alias", "cast", "literal", "sort_order", "window"):
        if not _counts_rows(expression):
            for inner in _expressions_in(getattr(expression, kind)):
                _names(inner, paths, words)
    else:
        raise _AllColumns


def _words(text: str) -> list[str]:
    """The words of SQL text, which may be names of columns.

    Raises
    ------
    _AllColumns
        It may mean columns by something else.
    """
    if _STAR.search(_COUNT.sub("", text)) or _MORE.search(text):
        raise _AllColumns
    found = _WORD.findall(text)
    if any(_PATTERN.search(quoted) for quoted, _ in found):
        raise _AllColumns
    return [quoted or plain for quoted, plain in found]


def _counts_rows(expression: Any) -> bool:
    """Whether it is `count(*)`, which has no need of a column; others with a star are of all columns."""
    function = expression.unresolved_function
    if function.function_name.lower() != "count" or function.is_distinct or len(function.arguments) != 1:
        return False
    (counted,) = function.arguments
    is_star = counted.WhichOneof("expr_type") == "unresolved_star"
    return is_star and not counted.unresolved_star.unparsed_target


def _expressions_in(message: Any) -> list[Any]:
    """The outermost expressions in a part of an expression."""
    found: list[Any] = []
    for part in _messages_in(message):
        is_whole = part.DESCRIPTOR.full_name == "spark.connect.Expression"
        found += [part] if is_whole else _expressions_in(part)
    return found
