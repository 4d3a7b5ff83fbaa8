"""Catalyst filters to expressions of the kernel.

What comes out is implied by the filter, so that no file with a matching row is skipped: weaker is fine, and a
part that is not known is left out where that only weakens. Where a filter is asked for the rows of which it is
*false* (below a `NOT`), what may be left out changes sides. Nodes that the kernel would compute otherwise than
Spark, in any version or mode, count as not known.

Source: Spark's `org.apache.spark.sql.catalyst.expressions`; names of nodes are those of its classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.events.spark import FILTER_NOT_TRANSLATED
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL, INTEGRAL, exact_type
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal, conjunction
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)
from delta_ds.records import dataclass
from delta_ds.spark.engines.classic.catalyst_nodes import (
    ARITHMETIC,
    FALSE,
    TRUE,
    Node,
    each_value,
    is_null,
    nodes_of,
    path,
    tree,
    type_json,
    unwrap,
)
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark, agrees, constant, data_type, items

if TYPE_CHECKING:
    from delta_ds.spark.base.kinds.java_object import JavaObject

Paths = Callable[[tuple[str, ...]], "tuple[str, ...] | None"]

_COMPARISONS = {
    "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}  # fmt: skip
_NULL_TESTS = {"IsNull": "isnull", "IsNotNull": "isnotnull"}
_TEXT_TESTS = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
# Never null, so that "not true" is "false".
_TWO_VALUED = frozenset(["IsNull", "IsNotNull", "EqualNullSafe", "IsNaN"])
# Fields of `_metadata` stand in a filter under their bare names and cannot be told from columns that are called so.
_METADATA = frozenset([
    "file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time",
    "row_index",
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Function:
    """The kernel's name, the types that each argument may have (the last may repeat), and the result's type."""

    name: str
    arguments: tuple[tuple[DataType, ...], ...]
    result: DataType | None = None  # None: that of the first argument
    on_rows: bool = False  # statistics say nothing of it


_DATE_PART = ((DATE,),)
_CLOCK = ((TIMESTAMP, TIMESTAMP_NTZ),)
_WHOLE = (INTEGRAL, INTEGRAL)
_TEXT = ((STRING,),)
_NUMBER = ((*INTEGRAL, *FRACTIONAL),)
_ORDERED = ((*INTEGRAL, *FRACTIONAL, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, BOOLEAN),)
_FUNCTIONS: dict[str, _Function] = {
    **{kind: _Function(kind.lower(), _DATE_PART, INTEGER) for kind in
       ("Year", "Month", "DayOfMonth", "DayOfYear", "DayOfWeek", "WeekDay", "Quarter", "WeekOfYear")},
    **{kind: _Function(kind.lower(), _CLOCK, INTEGER) for kind in ("Hour", "Minute", "Second")},
    "DateAdd": _Function("date_add", ((DATE,), INTEGRAL)),
    "DateSub": _Function("date_sub", ((DATE,), INTEGRAL)),
    "DateDiff": _Function("datediff", ((DATE,), (DATE,)), INTEGER),
    "AddMonths": _Function("add_months", ((DATE,), (INTEGER,))),
    "LastDay": _Function("last_day", _DATE_PART),
    "TruncDate": _Function("trunc", ((DATE,), (STRING,))),
    "TruncTimestamp": _Function("date_trunc", ((STRING,), (TIMESTAMP,)), TIMESTAMP),
    "UnixDate": _Function("unix_date", _DATE_PART, INTEGER),
    "UnixMicros": _Function("unix_micros", ((TIMESTAMP,),), LONG),
    "Length": _Function("length", ((STRING, BINARY),), INTEGER),
    "Substring": _Function("substring", ((STRING,), (INTEGER,), (INTEGER,))),
    "Concat": _Function("concat", ((STRING,), (STRING,))),
    "IsNaN": _Function("isnan", (FRACTIONAL,), BOOLEAN),
    "OctetLength": _Function("octet_length", ((STRING, BINARY),), INTEGER, on_rows=True),
    "Upper": _Function("ascii_upper", _TEXT, on_rows=True), "Lower": _Function("ascii_lower", _TEXT, on_rows=True),
    **{kind: _Function(name, (*_TEXT, *_TEXT), on_rows=True) for kind, name in
       (("StringTrim", "trim"), ("StringTrimLeft", "ltrim"), ("StringTrimRight", "rtrim"))},
    "StringReplace": _Function("replace", (*_TEXT, *_TEXT, *_TEXT), on_rows=True),
    "StringInstr": _Function("instr", (*_TEXT, *_TEXT), INTEGER, on_rows=True),
    "Abs": _Function("abs", _NUMBER, on_rows=True), "UnaryMinus": _Function("negative", _NUMBER, on_rows=True),
    "BitwiseAnd": _Function("&", _WHOLE, on_rows=True), "BitwiseOr": _Function("|", _WHOLE, on_rows=True),
    "BitwiseXor": _Function("^", _WHOLE, on_rows=True), "BitwiseNot": _Function("~", _WHOLE, on_rows=True),
    "Greatest": _Function("greatest", _ORDERED, on_rows=True), "Least": _Function("least", _ORDERED, on_rows=True),
}  # fmt: skip

# In the types of nested values that are not simply copied.
_TEXTS_OF_OTHER_FORMS = ("collate", "variant", "char(")
# What the kernel computes of floating point numbers as Spark does, bit by bit, and of decimals by Arrow, where no digit
# is given up. Statistics say nothing of it.
_ON_FRACTIONS = frozenset(["Add", "Subtract", "Multiply", "Divide"])
_ON_DECIMALS = frozenset(["Add", "Subtract", "Multiply"])


def translate(filters: JavaObject, paths: Paths, timezone: str) -> list[Expression]:
    """What the filters that Spark hands to `FileIndex.listFiles` demand, as far as the kernel can say it.

    Parameters
    ----------
    filters
        The JVM's `Seq[Expression]`; each must hold.
    paths
        From the names of a column and its fields, as the scan calls them, to the table's logical path. None:
        not to be used, such as columns whose text is compared otherwise than by its bytes.
    timezone
        The session's, with which the result will be bound.

    Returns
    -------
    list of Expression
        Not bound. Each is implied by a filter; filters that say nothing are left out. A filter may name columns
        or types that the kernel does not take, so bind one by one.
    """
    translated = (_translate_one(filters.apply(i), paths, timezone) for i in range(filters.size()))
    return [part for parts in translated for part in parts]


def _translate_one(expression: JavaObject, paths: Paths, timezone: str) -> list[Expression]:
    from py4j.protocol import Py4JError

    try:
        return translate_json(nodes_of(expression), paths, timezone)
    except (Py4JError, LookupError, TypeError, ValueError) as error:
        # A node that this version of Spark describes otherwise costs skipping, never the query.
        FILTER_NOT_TRANSLATED.log(reason=repr(error).partition("\n")[0])
        return []


def translate_json(nodes: Sequence[Mapping[str, Any]], paths: Paths, timezone: str) -> list[Expression]:
    """What one filter demands, from its nodes as `nodes_of` gives them.

    Returns
    -------
    list of Expression
        Empty if nothing is known.
    """
    try:
        predicate = _Translation(paths, timezone).implied(tree(nodes), True)
    except RecursionError:
        FILTER_NOT_TRANSLATED.log(reason="nested_too_deeply", nodes=len(nodes))
        return []
    return [] if predicate is None or predicate == Literal(True, BOOLEAN) else [predicate]


def translate_whole(
    expression: JavaObject, paths: Paths, timezone: str, names: Mapping[int, str] | None = None
) -> Expression:
    """An expression that equals a Catalyst expression in every row.

    Where one of the two raises, so may the other, and need not.

    Parameters
    ----------
    expression, paths, timezone
        As of `translate`.
    names
        Other names for columns, by their ids; None: columns have names of their own.

    Raises
    ------
    OnlySpark
        The kernel has none; the first node that it does not have is named.
    """
    from py4j.protocol import Py4JError

    try:
        nodes = nodes_of(expression)
        if names is not None:
            nodes = [_renamed(node, names) for node in nodes]
        whole = tree(nodes)
        translation = _Translation(paths, timezone, whole=True)
        found = translation.exact(whole) or translation.nested_column(whole)
        if found is None:
            raise OnlySpark(translation.obstacle(whole))
    except (Py4JError, LookupError, TypeError, ValueError, RecursionError) as error:
        # A node that this version of Spark describes otherwise: Spark evaluates it itself.
        raise OnlySpark(repr(error).partition("\n")[0]) from error
    return found


def _renamed(node: dict[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    if not str(node["class"]).endswith(".AttributeReference"):
        return node
    return {**node, "name": names[int(node["exprId"]["id"])]}


@dataclass(frozen=True, slots=True)
class _Translation:
    """`whole`: what comes out is evaluated on rows, and skips no files."""

    paths: Paths
    timezone: str
    whole: bool = False

    # --- conditions

    def implied(self, node: Node, truth: bool) -> Expression | None:
        """A predicate that holds for every row for which the condition is `truth`; None if there is none."""
        node = unwrap(node)
        kind = node.kind
        if kind == "Not":
            return self.implied(node.children[0], not truth)
        if kind in ("And", "Or"):
            parts = [self.implied(part, truth) for part in _parts(node)]
            return _all(parts) if (kind == "And") == truth else _any(parts)
        if kind in _NULL_TESTS:
            node = _pushed_into_choice(node)
        if node.kind in ("If", "CaseWhen"):
            return _any(self._branches(node, truth))
        if kind == "Coalesce":
            return _any([self.implied(child, truth) for child in node.children])
        if kind == "In" and not truth:
            return self._not_in(node)
        if node.kind == "Literal" and data_type(node.fields.get("dataType")) == BOOLEAN:
            return Literal(node.fields["value"] == str(truth).lower(), BOOLEAN)
        exact = self.exact(node)
        return exact if exact is None or truth else Call("not", (exact,))

    def _branches(self, choice: Node, truth: bool) -> Iterator[Expression | None]:
        """For each branch of an `If` or `CaseWhen`: what holds where it is taken and gives `truth`."""
        before: list[Expression | None] = []
        for condition, value in zip(choice.children[::2], choice.children[1::2], strict=False):
            yield _all([*before, self.implied(condition, True), self.implied(value, truth)])
            if unwrap(condition).kind in _TWO_VALUED:
                before.append(self.implied(condition, False))
        if len(choice.children) % 2:
            yield _all([*before, self.implied(choice.children[-1], truth)])

    def _not_in(self, node: Node) -> Expression | None:
        """Unequal to all items is unequal to those that are known."""
        value = self.exact(node.children[0])
        listed = [item for item in map(self.exact, node.children[1:]) if item is not None]
        return Call("not", (Call("in", (value, *listed)),)) if value is not None and listed else None

    # --- values

    def nested_column(self, node: Node) -> Column | None:
        """A column or field of structs, arrays or maps as it is; None for anything else."""
        node = unwrap(node)
        raw = type_json(node) if node.kind in ("AttributeReference", "Field") else None
        if not isinstance(raw, dict) or any(word in str(raw) for word in _TEXTS_OF_OTHER_FORMS):
            return None
        return self._column(node)

    def obstacle(self, node: Node) -> str:
        """What the kernel does not have of a node that `exact` has no expression for, in words."""
        node = unwrap(node)
        if node.kind in ("AttributeReference", "Field"):
            return f"the column {'.'.join(path(node) or ('?',))}"
        for child in node.children:
            if self.exact(child) is None:
                return self.obstacle(child)
        return f"the expression {node.kind}"

    def exact(self, node: Node) -> Expression | None:
        """An expression equal to the node in every row; None if the kernel has none."""
        node = unwrap(node)
        kind = node.kind
        if kind in _NULL_TESTS:
            return self._null_test(node)
        if kind in ("AttributeReference", "Field"):
            return None if data_type(type_json(node)) is None else self._column(node)
        if kind == "Literal":
            return constant(node, self.timezone)
        if kind == "Cast":
            return self._cast(node)
        if kind == "InSet":
            return self._in_set(node)
        if kind in _TEXT_TESTS or kind == "Like":
            return self._text_test(node)
        if kind in ARITHMETIC:
            return self._arithmetic(node)
        if kind in _FUNCTIONS:
            return self._function(node, _FUNCTIONS[kind])
        if kind == "In" and len(node.children) == 1:
            return None  # a setting says whether null is in an empty list
        name = _COMPARISONS.get(kind) or _ON_EXACT.get(kind)
        return None if name is None else self._call(name, node.children)

    def _call(self, name: str, children: Iterable[Node]) -> Call | None:
        args: list[Expression] = []
        for child in children:
            arg = self.exact(child)
            if arg is None:
                return None
            args.append(arg)
        return Call(name, tuple(args))

    def _column(self, node: Node) -> Column | None:
        names = path(node)
        if names is None or names[0] in _METADATA:
            return None
        logical = self.paths(names)
        return None if logical is None else Column(logical)

    def _null_test(self, node: Node) -> Expression | None:
        child = unwrap(node.children[0])
        # Of a column of any type, nested ones included.
        value = self._column(child) or self.exact(child)
        return None if value is None else Call(_NULL_TESTS[node.kind], (value,))

    def _cast(self, node: Node) -> Expression | None:
        source, target = self._type(node.children[0]), data_type(type_json(node))
        if source is None or target is None:
            return None
        if source == VOID and is_null(node.children[0]):
            return Literal(None, target)
        mode = node.fields.get("evalMode")
        if not agrees(source, target, mode, node.fields.get("timeZoneId") == self.timezone):
            return None
        child = self.exact(node.children[0])
        return child if child is None or source == target else Cast(child, target, safe=mode == "TRY")

    def _in_set(self, node: Node) -> Expression | None:
        item_type = self._type(node.children[0])
        listed = None if item_type is None else items(node, item_type)
        value = self.exact(node.children[0])
        return None if not listed or value is None else Call("in", (value, *listed))

    def _text_test(self, node: Node) -> Expression | None:
        if any(self._type(child) != STRING for child in node.children):
            return None
        call = self._call(_TEXT_TESTS.get(node.kind, "like"), node.children)
        if node.kind != "Like" or call is None:
            return call
        escape = node.fields.get("escapeChar")
        return Call("like", (*call.args, Literal(escape, STRING))) if isinstance(escape, str) else None

    def _function(self, node: Node, function: _Function) -> Expression | None:
        zone = node.fields.get("timeZoneId")
        if zone is not None and zone != self.timezone:
            return None
        if function.on_rows and not self.whole:
            return None
        for i, child in enumerate(node.children):
            if self._type(child) not in function.arguments[min(i, len(function.arguments) - 1)]:
                return None
        return self._call(function.name, node.children)

    def _arithmetic(self, node: Node) -> Expression | None:
        name = ARITHMETIC[node.kind]
        left, right = map(self._type, node.children)
        if left in INTEGRAL and right in INTEGRAL:
            known = name != "/"
        elif not self.whole:
            known = False
        elif isinstance(left, DecimalType) and isinstance(right, DecimalType):
            known = node.kind in _ON_DECIMALS and self._type(node) == exact_type(name, left, right)
        else:
            known = node.kind in _ON_FRACTIONS and left in FRACTIONAL
        return self._call(name, node.children) if known else None

    def _type(self, node: Node) -> DataType | None:
        """The type of a node's value; None if it is not known."""
        node = unwrap(node)
        raw = data_type(type_json(node))
        if raw is not None:
            return raw
        if node.kind in ARITHMETIC:
            return data_type(node.fields.get("resultType")) or self._type(node.children[0])
        if node.kind in _FUNCTIONS:
            return _FUNCTIONS[node.kind].result or self._type(node.children[0])
        if node.kind in ("If", "CaseWhen"):
            return self._type(node.children[1])
        if node.kind == "Coalesce":
            return self._type(node.children[0])
        is_boolean = node.kind in _COMPARISONS or node.kind in _NULL_TESTS or node.kind in _ON_EXACT
        return BOOLEAN if is_boolean else None


# Nodes that are their children joined, nothing more.
_ON_EXACT = {
    **{name: name.lower() for name in ("And", "Or", "Not", "In", "Coalesce")},
    **dict.fromkeys(("If", "CaseWhen"), "case"),
}


def _parts(node: Node) -> Iterator[Node]:
    """The operands of an `And` or `Or` of many, however deep it is nested."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.kind == node.kind:
            waiting += reversed(part.children)
        else:
            yield part


def _pushed_into_choice(test: Node) -> Node:
    """A null test of an `If` or `CaseWhen` as a choice between null tests; a struct that is built is not null."""
    child = unwrap(test.children[0])
    if child.kind == "CreateNamedStruct":
        return TRUE if test.kind == "IsNotNull" else FALSE
    if child.kind not in ("If", "CaseWhen"):
        return test
    tests = each_value(child, lambda value: _pushed_into_choice(Node(test.kind, {}, (value,))))
    if len(tests.children) % 2:
        return tests
    no_branch = FALSE if test.kind == "IsNotNull" else TRUE
    return Node(tests.kind, tests.fields, (*tests.children, no_branch))


def _all(parts: Iterable[Expression | None]) -> Expression | None:
    """The conjunction of what is known."""
    restricting = [part for part in parts if part is not None and part != Literal(True, BOOLEAN)]
    return conjunction(list(dict.fromkeys(restricting)))


def _any(choices: Iterable[Expression | None]) -> Expression | None:
    """The disjunction, if all its parts are known."""
    parts: dict[Expression, None] = {}
    for part in choices:
        if part is None:
            return None
        if part != Literal(False, BOOLEAN):
            parts[part] = None
    if len(parts) == 1:
        return next(iter(parts))
    return Call("or", tuple(parts)) if parts else Literal(False, BOOLEAN)
