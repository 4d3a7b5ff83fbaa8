"""Text functions on Arrow values, by Spark's names. Positions count characters (code points) from 1."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import INVALID_INDEX_OF_ZERO
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.arrays import array_of, map_rows, scalar_of, spread
from delta_ds.kernel.format.expressions.casts import Value
from delta_ds.kernel.format.expressions.functions_lists import array_of_lists, length_of
from delta_ds.kernel.format.expressions.tree import Call, Literal
from delta_ds.kernel.format.schema.types import BINARY, BOOLEAN, INTEGER, STRING, ArrayType, DataType

_HEXADECIMAL = re.compile("[0-9a-fA-F]*")


def _rows(function: Callable[..., Any]) -> Callable[[Call, list[Any]], Value]:
    """A Python function of one row's arguments, run per row or per distinct value."""

    def run(node: Call, args: list[Any]) -> Value:
        types: list[DataType] = [a.type for a in node.args if a.type is not None]
        assert node.type is not None
        return map_rows(function, args, types, node.type)

    return run


def _length(node: Call, args: list[Any]) -> Value:
    lengths = pc.utf8_length(args[0]) if node.args[0].type == STRING else pc.binary_length(args[0])
    return lengths.cast(pa.int32())


def _octets(factor: int) -> Callable[[Call, list[Any]], Value]:
    return lambda node, args: pc.multiply(
        pc.binary_length(args[0]).cast(pa.int32()), scalar_of(factor, INTEGER)
    )


def _substring(text: Any, position: int, length: int = 1 << 31) -> Any:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = start + length
    return text[max(start, 0) : max(end, 0)] if end > start else text[:0]


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:].lower() for word in text.split(" "))


def _is_ascii(texts: Any) -> bool:
    return bool(pc.all(pc.string_is_ascii(texts), min_count=0).as_py())


def _of_ascii(
    kernel: Callable[[Any], Any], function: Callable[[str], str]
) -> Callable[[Call, list[Any]], Value]:
    """Arrow's kernel where all texts are ASCII, else the function text by text."""
    by_rows = _rows(function)

    def run(node: Call, args: list[Any]) -> Value:
        is_plain = not isinstance(args[0], pa.Scalar) and _is_ascii(args[0])
        return kernel(args[0]) if is_plain else by_rows(node, args)

    return run


def _ascii_only(kernel: Callable[[Any], Any]) -> Callable[[Call, list[Any]], Value]:
    """Other letters change as the Unicode of Java has them, which Python's may not be."""

    def run(node: Call, args: list[Any]) -> Value:
        texts = spread(args[0], 1) if isinstance(args[0], pa.Scalar) else args[0]
        if not _is_ascii(texts):
            raise PredicateError(f"{node.name} takes ASCII only, and there is other text")
        return kernel(args[0])

    return run


def _trimmed(
    kernel: Callable[..., Any], function: Callable[[str, str], str]
) -> Callable[[Call, list[Any]], Value]:
    def run(node: Call, args: list[Any]) -> Value:
        if len(args) == 1 and not isinstance(args[0], pa.Scalar):
            return kernel(args[0], characters=" ")
        return by_rows(node, args)

    by_rows = _rows(lambda text, characters=" ": function(text, characters) if characters else text)
    return run


def _pad(text: str, length: int, fill: str, left: bool) -> str:
    missing = length - len(text)
    if missing <= 0 or not fill:
        return text[: max(length, 0)]
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if left else text + padding


def _translate(text: str, source: str, target: str) -> str:
    table: dict[int, str | None] = {}
    for i, char in enumerate(source):
        table.setdefault(ord(char), target[i] if i < len(target) else None)
    return text.translate(table)


def _locate(part: str, text: str, position: int = 1) -> int:
    return 0 if position <= 0 else text.find(part, position - 1) + 1


def _hex(value: Any) -> str:
    if isinstance(value, int):
        return f"{value & 0xFFFFFFFFFFFFFFFF:X}"
    return str((value.encode() if isinstance(value, str) else value).hex().upper())


def _unhex(text: str) -> bytes | None:
    if not _HEXADECIMAL.fullmatch(text):
        return None
    return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)


def _chr(number: int) -> str:
    return "" if number < 0 else chr(number & 0xFF)


def _bin(number: int) -> str:
    return f"{number & 0xFFFFFFFFFFFFFFFF:b}"


def _levenshtein(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def _find_in_set(text: str, listed: str) -> int:
    return 0 if "," in text else next((n for n, one in enumerate(listed.split(","), 1) if one == text), 0)


def _concat(node: Call, args: list[Any]) -> Value:
    empty = scalar_of(b"" if node.type == BINARY else "", node.type or STRING)
    return pc.binary_join_element_wise(*args, empty) if len(args) > 1 else args[0]


def _concat_ws(node: Call, args: list[Any]) -> Value:
    length = next((len(a) for a in args if not isinstance(a, pa.Scalar)), 1)
    columns = [spread(a, length).to_pylist() for a in args]
    joined = [
        None if separator is None else separator.join(p for p in parts if p is not None)
        for separator, *parts in zip(*columns, strict=True)
    ]
    result = array_of(joined, STRING)
    return result[0] if all(isinstance(a, pa.Scalar) for a in args) else result


def _affix(
    kernel: Callable[..., Any], slow: Callable[[str, str], bool]
) -> Callable[[Call, list[Any]], Value]:
    """`startswith` and its kin: Arrow's kernel for a constant, else row by row."""

    def run(node: Call, args: list[Any]) -> Value:
        pattern = node.args[1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            return kernel(args[0], pattern=pattern.value)
        return map_rows(slow, args, [STRING, STRING], BOOLEAN)

    return run


# --- patterns


@functools.lru_cache(maxsize=256)
def like_pattern(pattern: str, escape: str = "\\") -> re.Pattern[str]:
    """The regular expression of a LIKE pattern.

    Raises
    ------
    PredicateError
        The escape character is followed by something it does not escape, or ends the pattern.
    """
    if len(escape) != 1:
        raise PredicateError(f"ESCAPE takes one character, not {escape!r}")
    parts: list[str] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, "")
            if escaped not in ("%", "_", escape) or not escaped:
                raise PredicateError(
                    f"the LIKE pattern {pattern!r} escapes {escaped!r}; only %, _ and {escape} can be"
                )
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(char) or re.escape(char))
    return re.compile("".join(parts), re.DOTALL)


def _like(node: Call, args: list[Any]) -> Value:
    pattern = node.args[1]
    if (
        node.name == "like"
        and len(args) == 2
        and isinstance(pattern, Literal)
        and "\\" not in (pattern.value or "\\")
    ):
        return pc.match_like(args[0], pattern=pattern.value)

    def matches(text: str, pattern: str, escape: str = "\\") -> bool:
        if node.name == "ilike":
            text, pattern = text.lower(), pattern.lower()
        return like_pattern(pattern, escape).fullmatch(text) is not None

    return map_rows(matches, args, [STRING] * len(args), BOOLEAN)


# What Java's regular expressions read otherwise than Python's, or only one of them knows.
_JAVA_ONLY = re.compile(
    r"\\[pPQEGRXhHvVNkzZAK]|\(\?[^:=!<PimsxL)]|\(\?P|&&|\[[^\]]*\[|[*+?}]\+|\\x\{|\$|\\[0cuU]"
)


@functools.lru_cache(maxsize=256)
def regex_of(pattern: str) -> re.Pattern[str]:
    """The compiled pattern of a Java regular expression.

    Raises
    ------
    PredicateError
        It is not valid, or holds something that Python matches otherwise than Java.
    """
    strange = _JAVA_ONLY.search(pattern.removesuffix("$") if not pattern.endswith("\\$") else pattern)
    if strange:
        raise PredicateError(
            f"the regular expression {pattern!r} holds {strange[0]!r}, "
            "which this package cannot match as Spark does"
        )
    ending = pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[:-1] + r"(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\Z)" if ending else pattern
    try:
        return re.compile(body, re.ASCII)
    except re.error as error:
        raise PredicateError(f"the regular expression {pattern!r} is not valid: {error}") from error


def _rlike(text: str, pattern: str) -> bool:
    return regex_of(pattern).search(text) is not None


_REFERENCE = re.compile(r"\\(.)|\$(\d)|([\\$])", re.DOTALL)


def _regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """Java's replacement: `$1` is a group, a backslash takes the next character as it is."""
    regex = regex_of(pattern)

    def expanded(match: re.Match[str]) -> str:
        def part(reference: re.Match[str]) -> str:
            escaped, group, stray = reference.groups()
            if stray or (group and int(group) > regex.groups):
                raise PredicateError(f"the replacement {replacement!r} does not fit the pattern {pattern!r}")
            return escaped if escaped is not None else match[int(group)] or ""

        return _REFERENCE.sub(part, replacement)

    return regex.sub(expanded, text)


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    regex = regex_of(pattern)
    if not 0 <= group <= regex.groups:
        raise PredicateError(f"the pattern {pattern!r} has {regex.groups} groups, not {group}")
    match = regex.search(text)
    return match[group] or "" if match else ""


def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Java's `String.split`, which keeps empty texts at the end; an empty pattern splits into characters."""
    if not pattern and text:
        count = len(text) if limit <= 0 else min(limit, len(text))
        return [*text[: count - 1], text[count - 1 :]] if limit > 0 else list(text)
    found: list[str] = []
    at = 0
    for match in regex_of(pattern).finditer(text):
        if 0 < limit <= len(found) + 1:
            break
        if match.end() == 0:
            continue  # nothing before the first character
        found.append(text[at : match.start()])
        at = match.end()
    return [*found, text[at:]]


def _split_texts(node: Call, args: list[Any]) -> Value:
    length = length_of(args)
    columns = [spread(value, length).to_pylist() for value in args]
    kind = node.type
    assert isinstance(kind, ArrayType)
    found = array_of_lists(
        [None if None in row else _split(*row) for row in zip(*columns, strict=True)], kind
    )
    return found[0] if all(isinstance(value, pa.Scalar) for value in args) else found


def _regexp_count(text: str, pattern: str) -> int:
    return sum(1 for _ in regex_of(pattern).finditer(text))


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or not count:
        return ""
    size = len(delimiter)
    at = -1 if count > 0 else len(text) - size + 1
    for _ in range(abs(count)):
        at = text.find(delimiter, at + 1) if count > 0 else text.rfind(delimiter, 0, max(at - 1 + size, 0))
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + size :]


def _split_part(text: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise INVALID_INDEX_OF_ZERO(function="split_part")
    parts = text.split(delimiter) if delimiter else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


RUN: dict[str, Callable[[Call, list[Any]], Value]] = {
    "length": _length,
    "octet_length": _octets(1),
    "bit_length": _octets(8),
    "upper": _of_ascii(pc.ascii_upper, str.upper),
    "lower": _of_ascii(pc.ascii_lower, str.lower),
    "ascii_upper": _ascii_only(pc.ascii_upper),
    "ascii_lower": _ascii_only(pc.ascii_lower),
    "reverse": _rows(lambda text: text[::-1]),
    "initcap": _rows(_initcap),
    "ascii": _rows(lambda text: ord(text[0]) if text else 0),
    "trim": _trimmed(pc.ascii_trim, str.strip),
    "ltrim": _trimmed(pc.ascii_ltrim, str.lstrip),
    "rtrim": _trimmed(pc.ascii_rtrim, str.rstrip),
    "left": _rows(lambda text, count: text[: max(count, 0)]),
    "right": _rows(lambda text, count: text[-count:] if count > 0 else ""),
    "repeat": _rows(lambda text, count: text * max(count, 0)),
    "lpad": _rows(lambda text, length, fill=" ": _pad(text, length, fill, True)),
    "rpad": _rows(lambda text, length, fill=" ": _pad(text, length, fill, False)),
    "substring": _rows(_substring),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "btrim": _rows(lambda text, characters=" ": text.strip(characters) if characters else text),
    "space": _rows(lambda count: " " * max(count, 0)),
    "chr": _rows(_chr),
    "bin": _rows(_bin),
    "base64": _rows(lambda data: base64.b64encode(data).decode()),
    "levenshtein": _rows(_levenshtein),
    "find_in_set": _rows(_find_in_set),
    "split": _split_texts,
    "regexp_count": _rows(_regexp_count),
    "replace": _rows(lambda text, old, new="": text.replace(old, new) if old else text),
    "translate": _rows(_translate),
    "instr": _rows(lambda text, part: text.find(part) + 1),
    "locate": _rows(_locate),
    "hex": _rows(_hex),
    "unhex": _rows(_unhex),
    "startswith": _affix(pc.starts_with, str.startswith),
    "endswith": _affix(pc.ends_with, str.endswith),
    "contains": _affix(pc.match_substring, str.__contains__),
    "like": _like,
    "ilike": _like,
    "rlike": _rows(_rlike),
    "regexp_replace": _rows(_regexp_replace),
    "regexp_extract": _rows(_regexp_extract),
    "substring_index": _rows(_substring_index),
    "split_part": _rows(_split_part),
}
