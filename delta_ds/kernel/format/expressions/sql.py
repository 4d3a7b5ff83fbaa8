"""Parse Spark SQL expressions into expression trees.

Plain filters are read by `plain_sql.py`; for all else sqlglot's Spark dialect does the grammar. Two things are
taken off its hands because they decide answers: string literals (Spark's escapes, `''` and neighbouring literals) are
normalised before it reads the text, and functions keep the names and arguments they were written with instead of
sqlglot's dialect-neutral forms. Where sqlglot groups operators otherwise than Spark, parentheses are asked for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.bind import ALIASES, CAST_FUNCTIONS, DATE_PARTS, TYPE_NAMES
from delta_ds.kernel.format.expressions.plain_sql import (
    constant_cast,
    normalise_literals,
    number_literal,
    plain_filter,
)
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    STRING,
    VOID,
    DataType,
    DecimalType,
)


def parse_predicate(text: str) -> Expression:
    """Read a predicate written in Spark SQL, without a schema: names and types are settled by `bind`.

    Parameters
    ----------
    text
        What would stand after `WHERE`, e.g. ``"day >= DATE'2024-01-01' AND `a b`.c IN (1, 2)"``.

    Returns
    -------
    Expression
        The unbound tree. Functions that cannot be evaluated are kept by name.

    Raises
    ------
    PredicateError
        The text is not SQL, or holds something outside the grammar (named in the message).

    >>> str(parse_predicate("i BETWEEN 1 AND 2 OR s LIKE 'a%'"))
    "(((i >= 1) AND (i <= 2)) OR (s LIKE 'a%'))"
    """
    if not isinstance(text, str) or not text.strip():
        raise PredicateError(f'a predicate must be SQL text such as "id = 1", not {text!r}')
    plain = plain_filter(text)
    return _taken_apart(text) if plain is None else plain


def parse_definition(text: str) -> Expression:
    """As `parse_predicate`, of an expression of a table's metadata, in which there may be lambdas."""
    token = _variables.set(frozenset())
    try:
        return parse_predicate(text)
    finally:
        _variables.reset(token)


# The variables of the lambdas around what is read; None where lambdas are not read.
_variables: ContextVar[frozenset[str] | None] = ContextVar("_variables", default=None)


def _taken_apart(text: str) -> Expression:
    from delta_ds.kernel.format.expressions.conditions import read_conditions

    try:
        tree = read_conditions(text, _condition)
    except PredicateError:
        if len(text) > _LONGEST_WHOLE:
            raise
        tree = None  # what is wrong is to be told of the whole text
    return _parse(text) if tree is None else tree


_LONGEST_WHOLE = 10_000


def _condition(text: str) -> Expression:
    plain = plain_filter(text)
    return _parse(text) if plain is None else plain


def check_syntax(text: str) -> None:
    """Refuse what is no SQL expression; one outside of the grammar passes.

    Raises
    ------
    PredicateError
        The text is not SQL.
    """
    if plain_filter(text) is None:
        _read(text, lambda node: None)


def _parse(text: str) -> Expression:
    """What `parse_predicate` gives, for any text, by sqlglot."""
    tree: Expression = _read(text, _convert)
    return tree


def _read(text: str, convert: Callable[[Any], Any]) -> Any:
    """What is made of the tree that sqlglot reads."""
    from sqlglot import errors, exp

    try:
        node = _dialect()().parse_into(exp.Condition, normalise_literals(text))
        if len(node) == 1 and node[0] is not None:
            return convert(node[0])
    except errors.SqlglotError as error:
        details: Any = getattr(error, "errors", None) or [{}]
        where = f" near {details[0]['highlight']!r}" if details[0].get("highlight") else ""
        reason = details[0].get("description") or str(error).split("\n")[0]
        if "missing for <class" in reason:  # sqlglot's own words for what `a >` lacks
            reason = "something is missing there"
        raise PredicateError(f"cannot parse the predicate {text!r}{where}: {reason}") from error
    except RecursionError as error:
        raise PredicateError("the predicate is nested too deeply to be parsed; split it up") from error
    raise PredicateError(f"a predicate must be one expression, not {text!r}")


@functools.cache
def _dialect() -> Any:
    from sqlglot.dialects.spark import Spark

    # The syntax of these is more than a name and a list of arguments.
    special = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
    base: Any = Spark.Parser
    parser = type(
        "Parser",
        (base,),
        {
            "FUNCTIONS": {},
            "NO_PAREN_FUNCTIONS": {},
            "FUNCTION_PARSERS": {k: v for k, v in base.FUNCTION_PARSERS.items() if k in special},
        },
    )
    return type("DeltaPredicates", (Spark,), {"Parser": parser})


# --- sqlglot nodes to ours

_OPERATORS = {
    "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>",
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "DPipe": "concat",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "RegexpLike": "rlike",
}  # fmt: skip
_COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">=", "<=>"])
_BINDING = {"&": 3, "^": 2, "|": 1}  # tighter is higher; all other binary operators of values bind tighter


def _convert(node: Any) -> Expression:
    name = type(node).__name__
    operator = _OPERATORS.get(name)
    if operator:
        return _binary(operator, node)
    handler = _HANDLERS.get(name)
    if handler:
        return handler(node)
    raise _outside(node)


def _outside(node: Any) -> PredicateError:
    return PredicateError(
        f"{node.sql(dialect='spark')!r} ({node.key}) is outside the SQL that predicates may use; "
        "rewrite it with comparisons, AND/OR/NOT, IN, BETWEEN, LIKE, CASE, CAST and scalar functions"
    )


def _binary(operator: str, node: Any) -> Expression:
    left, right = node.this, node.expression
    inner = (_OPERATORS.get(type(left).__name__), _OPERATORS.get(type(right).__name__))
    if (
        (operator in _COMPARISONS and inner[1] in _COMPARISONS)
        or (operator in _BINDING and _BINDING.get(str(inner[0]), 9) < _BINDING[operator])
        or (operator == "concat" and (inner[0] in _BINDING or inner[1] in ("+", "-")))
        or (operator in _BINDING and "concat" in inner)
    ):
        raise PredicateError(f"put parentheses into {node.sql(dialect='spark')!r}: its grouping is ambiguous")
    if operator == "rlike" or type(right).__name__ not in ("Any", "All"):
        return Call(operator, (_convert(left), _convert(right)))
    raise PredicateError(f"{node.sql(dialect='spark')!r}: ANY and ALL are not supported; use OR, AND or IN")


def _logic(name: str) -> Callable[[Any], Expression]:
    def convert(node: Any) -> Expression:
        # Long chains lean to the left: walked here, not recursed into.
        chain, parts = node, []
        while type(chain) is type(node):
            parts.append(_convert(chain.expression))
            chain = chain.this
        parts.append(_convert(chain))
        flat: list[Expression] = []
        for part in reversed(parts):
            flat.extend(part.args if isinstance(part, Call) and part.name == name else (part,))
        return Call(name, tuple(flat))

    return convert


def _column(node: Any) -> Expression:
    if type(node.this).__name__ != "Identifier":
        raise _outside(node)
    if node.name.lower() in (_variables.get() or ()) and node.args.get("table") is None:
        return _variable(node)
    parts = [node.args.get(k) for k in ("catalog", "db", "table", "this")]
    path = tuple(p.name for p in parts if p is not None)
    if len(path) == 1 and not node.this.args.get("quoted") and path[0].lower() in _NILADIC:
        return Call(_NILADIC[path[0].lower()], ())
    return Column(path)


_NILADIC = {"current_date": "current_date", "current_timestamp": "current_timestamp"}


def _dot(node: Any) -> Expression:
    if type(node.expression).__name__ != "Identifier":
        raise PredicateError(f"{node.sql(dialect='spark')!r} is neither a column nor a function")
    child, name = _convert(node.this), node.expression.name
    if isinstance(child, Column):
        return Column((*child.path, name))
    return Call("getfield", (child, Literal(name, STRING)))


def _literal(node: Any) -> Literal:
    return Literal(node.this, STRING) if node.is_string else number_literal(str(node.this))


def _negative(node: Any) -> Expression:
    inner = node.this
    if type(inner).__name__ == "Literal" and not inner.is_string and re.fullmatch(r"\d+", str(inner.this)):
        return number_literal(f"-{inner.this}")  # the lowest int has no positive twin
    # A suffix, as in -128Y, arrives as a cast of the number without its sign.
    suffixed = type(inner).__name__ in ("Cast", "TryCast") and type(inner.this).__name__ == "Literal"
    child = _literal(inner.this) if suffixed and not inner.this.is_string else _convert(inner)
    if not (isinstance(child, Literal) and isinstance(child.value, (int, float, Decimal))):
        return Call("negative", (child,))
    value = (
        child.value.copy_negate() if isinstance(child.value, Decimal) else -child.value
    )  # -0.0D has a sign
    negated = Literal(value, child.type)
    return constant_cast(negated, _data_type(inner.args["to"]), False) if suffixed else negated


def _cast(node: Any) -> Expression:
    return constant_cast(_convert(node.this), _data_type(node.args["to"]), bool(node.args.get("safe")))


def _data_type(node: Any) -> DataType:
    kind = getattr(node.this, "name", "")
    if kind == "DECIMAL":
        sizes = [int(p.this.this) for p in node.expressions]
        precision, scale = (*sizes, *(10, 0)[len(sizes) :])
        if 0 < precision <= 38 and 0 <= scale <= precision:
            return DecimalType(precision, scale)
    elif kind in TYPE_NAMES and not node.args.get("nested") and not node.args.get("collate"):
        return TYPE_NAMES[kind]
    raise PredicateError(f"a predicate cannot cast to {node.sql(dialect='spark')}")


def _in(node: Any) -> Expression:
    if not node.expressions:
        raise PredicateError(f"IN needs a list of values: {node.sql(dialect='spark')!r}")
    return Call("in", (_convert(node.this), *map(_convert, node.expressions)))


def _between(node: Any) -> Expression:
    value = _convert(node.this)
    low, high = _convert(node.args["low"]), _convert(node.args["high"])
    return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))


def _is(node: Any) -> Expression:
    kind, value = type(node.expression).__name__, _convert(node.this)
    if kind == "Null":
        return Call("isnull", (value,))
    if kind == "Boolean":
        return Call("<=>", (value, Literal(node.expression.this, BOOLEAN)))
    raise PredicateError(f"IS takes NULL, TRUE, FALSE or UNKNOWN: {node.sql(dialect='spark')!r}")


def _not(node: Any) -> Expression:
    child = _convert(node.this)
    if isinstance(child, Call) and child.name == "isnull" and type(node.this).__name__ == "Is":
        return Call("isnotnull", child.args)
    return Call("not", (child,))


def _like(name: str) -> Callable[[Any], Expression]:
    def convert(node: Any) -> Expression:
        call = _binary(name, node)
        return Call("not", (call,)) if node.args.get("negate") else call

    return convert


def _escape(node: Any) -> Expression:
    like, escape = _convert(node.this), _convert(node.expression)
    if isinstance(like, Call) and like.name == "not" and isinstance(like.args[0], Call):
        return Call("not", (Call(like.args[0].name, (*like.args[0].args, escape)),))
    if isinstance(like, Call) and like.name in ("like", "ilike"):
        return Call(like.name, (*like.args, escape))
    raise PredicateError(f"ESCAPE belongs to LIKE: {node.sql(dialect='spark')!r}")


def _case(node: Any) -> Expression:
    operand = _convert(node.this) if node.this is not None else None
    args: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = _convert(branch.this)
        args.append(Call("=", (operand, condition)) if operand is not None else condition)
        args.append(_convert(branch.args["true"]))
    if node.args.get("default") is not None:
        args.append(_convert(node.args["default"]))
    return Call("case", tuple(args))


def _if(node: Any) -> Expression:
    if node.args.get("false") is None:
        raise PredicateError(f"IF takes a condition and two values: {node.sql(dialect='spark')!r}")
    return Call("case", tuple(_convert(node.args[k]) for k in ("this", "true", "false")))


def _trim(node: Any) -> Expression:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    characters = node.args.get("expression")
    return Call(name, (_convert(node.this), *([_convert(characters)] if characters is not None else [])))


def _substring(node: Any) -> Expression:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return Call("substring", tuple(_convert(p) for p in parts if p is not None))


def _interval(node: Any) -> Expression:
    unit = node.args.get("unit")
    value = node.this
    if value is None or type(unit).__name__ != "Var" or type(value).__name__ != "Literal":
        raise PredicateError(
            f"only intervals of one number and one unit are supported: {node.sql(dialect='spark')!r}"
        )
    return Call("interval", (Literal(str(value.this), STRING), Literal(unit.name.upper(), STRING)))


def _hex(node: Any) -> Expression:
    digits = str(node.this)
    return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)


def _function(node: Any) -> Expression:
    name = str(getattr(node.this, "name", node.this)).lower()
    name = ALIASES.get(name, name)
    args = tuple(map(_convert, node.expressions))
    if len(args) == 1 and name in CAST_FUNCTIONS:
        return constant_cast(args[0], CAST_FUNCTIONS[name], False)
    rewrite = _REWRITES.get((name, len(args)))
    return rewrite(*args) if rewrite else Call(name, args)


def _trim_swapped(name: str) -> Callable[..., Expression]:
    return lambda characters, value: Call(name, (value, characters))


def _part_of_date(part: Expression, value: Expression) -> Expression:
    name = str(part.value).lower() if isinstance(part, Literal) else ""
    return Call(DATE_PARTS.get(name, "date_part"), (value,) if name in DATE_PARTS else (part, value))


def _lambda(node: Any) -> Expression:
    around = _variables.get()
    if around is None or not all(type(n).__name__ == "Identifier" for n in node.expressions):
        raise _outside(node)
    names = [n.name for n in node.expressions]
    token = _variables.set(around | {name.lower() for name in names})
    try:
        return Call("lambda", (_convert(node.this), *(Literal(name, STRING) for name in names)))
    finally:
        _variables.reset(token)


def _variable(node: Any) -> Expression:
    if node.name.lower() not in (_variables.get() or ()):
        raise _outside(node)
    return Call("variable", (Literal(node.name, STRING),))


_REWRITES: dict[tuple[str, int], Callable[..., Expression]] = {
    ("nullif", 2): lambda a, b: Call("case", (Call("=", (a, b)), Literal(None, VOID), a)),
    ("nvl2", 3): lambda a, b, c: Call("case", (Call("isnotnull", (a,)), b, c)),
    ("if", 3): lambda a, b, c: Call("case", (a, b, c)),
    ("position", 2): lambda a, b: Call("locate", (a, b)),
    ("position", 3): lambda a, b, c: Call("locate", (a, b, c)),
    ("ltrim", 2): _trim_swapped("ltrim"),
    ("rtrim", 2): _trim_swapped("rtrim"),
    ("date_part", 2): _part_of_date,
    ("datepart", 2): _part_of_date,
    ("log", 1): lambda a: Call("ln", (a,)),
    ("positive", 1): lambda a: a,
    ("equal_null", 2): lambda a, b: Call("<=>", (a, b)),
    ("not", 1): lambda a: Call("not", (a,)),
}

_HANDLERS: dict[str, Callable[[Any], Expression]] = {
    "And": _logic("and"),
    "Or": _logic("or"),
    "Not": _not,
    "Paren": lambda node: _convert(node.this),
    "Column": _column,
    "Dot": _dot,
    "Literal": _literal,
    "RawString": lambda node: Literal(node.this, STRING),
    "Boolean": lambda node: Literal(bool(node.this), BOOLEAN),
    "Null": lambda node: Literal(None, VOID),
    "HexString": _hex,
    "Neg": _negative,
    "BitwiseNot": lambda node: Call("~", (_convert(node.this),)),
    "NullSafeNEQ": lambda node: Call("not", (_binary("<=>", node),)),
    "Cast": _cast,
    "TryCast": _cast,
    "In": _in,
    "Between": _between,
    "Is": _is,
    "Like": _like("like"),
    "ILike": _like("ilike"),
    "Escape": _escape,
    "Case": _case,
    "If": _if,
    "Trim": _trim,
    "Substring": _substring,
    "StrPosition": lambda node: Call(
        "locate",
        tuple(
            _convert(p) for p in (node.args["substr"], node.this, node.args.get("position")) if p is not None
        ),
    ),
    "Extract": lambda node: _part_of_date(Literal(node.this.name, STRING), _convert(node.expression)),
    "Interval": _interval,
    "Bracket": lambda node: Call("getitem", (_convert(node.this), _convert(node.expressions[0]))),
    "Anonymous": _function,
    "Lambda": _lambda,
    "Identifier": _variable,
    "Transform": lambda node: Call("transform", (_convert(node.this), _convert(node.expression))),
}
