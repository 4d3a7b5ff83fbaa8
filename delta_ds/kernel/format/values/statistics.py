"""Per-file statistics as Arrow columns, from JSON text and from a checkpoint's `stats_parsed`.

Only the leaves that somebody asks for are parsed, all files at once. Whatever cannot be understood is
unknown (null): statistics may be absent for any file and any column, so unknown is always a right answer.

Source: PROTOCOL.md, "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, texts, true_rows
from delta_ds.kernel.format.expressions.arrays import FALSE, TRUE, scalar_of
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    LONG,
    DataType,
    DecimalType,
    arrow_type,
)
from delta_ds.kernel.format.values.statistics_json import has_bounds, parse_lines
from delta_ds.records import dataclass

Path = tuple[str, ...]


class FilesToPrune(Protocol):
    """What deciding about files takes: their partition values and statistics, each when it is asked for."""

    @property
    def num_rows(self) -> int:
        """How many files there are."""
        ...

    def partition_texts(self, physical: str) -> pa.Array:
        """The values of a partition column as strings; null for none."""
        ...

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Int64Array) -> pa.Table | None:
        """Typed statistics; see `LiveFiles.stats_parsed`."""
        ...

    def stats_texts(self, rows: pa.Int64Array) -> Iterator[pa.Array]:
        """The `stats` JSON text of the files with these ascending numbers, in order, piece by piece; null for none."""
        ...

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """What `keep` was given under these names, one value a file; None if any of it is not there any more."""
        ...

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """Keep columns for the next time that somebody asks about the same files, if there is room."""
        ...


_INTEGERS = frozenset(["byte", "short", "integer", "long"])
_TEMPORAL = frozenset(["date", "timestamp", "timestamp_ntz"])

_WIDE = Context(prec=76)  # Python's own has 28 digits
_DAY_US = 86_400_000_000
# Until 1972 some zones were off UTC by odd seconds, which Spark's offsets (hours and minutes) do not show.
_LAST_ODD_OFFSET_US = 2 * 366 * _DAY_US
_ZONED = r"(Z|[+-]\d\d:?\d\d)$"
_ODD_OFFSET = r"[+-]\d\d:?(00|15|30|45)$|Z$"
_DATE_START = r"^\d{4}-\d\d-\d\d"
_NANOSECONDS = r"(\.\d{6})\d+"


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the log says about the values of some files; null is unknown everywhere.

    Attributes
    ----------
    num_records
        Physical rows of each file, deleted ones included.
    tight_bounds
        False where min, max and null counts describe a superset of the live rows.
    counts_nan
        True where the writer is known to count NaN as the greatest of numbers, as Spark does. Some leave it out of
        the statistics; none of those says anything about tight bounds.
    min, max
        Bounds by physical path, in the Arrow type of the column. Timestamps may be cut to milliseconds,
        so `max` of a timestamp may be up to 999 microseconds below the true maximum.
    null_count
        Nulls by physical path, counting the fields of null structs.
    """

    num_records: pa.Int64Array
    tight_bounds: pa.BooleanArray
    counts_nan: pa.BooleanArray
    min: Mapping[Path, pa.Array]
    max: Mapping[Path, pa.Array]
    null_count: Mapping[Path, pa.Int64Array]


@dataclass(frozen=True, slots=True)
class StatisticsLeaf:
    """One number per file: where it stands in the statistics, and the type it is to have."""

    path: Path
    type: DataType

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    @property
    def key(self) -> str:
        """A name that no other leaf has, nor the same one as another type."""
        return "\0".join([*self.path, str(self.type)])

    @property
    def has_dots(self) -> bool:
        return any("." in name for name in self.path)


_NUM_RECORDS = StatisticsLeaf(("numRecords",), LONG)
_TIGHT_BOUNDS = StatisticsLeaf(("tightBounds",), BOOLEAN)


def load_statistics(
    files: FilesToPrune, rows: pa.Int64Array, leaves: Sequence[tuple[Path, DataType]]
) -> Statistics:
    """Load the statistics of some columns of some files.

    The checkpoint's typed statistics win; JSON is parsed only for the files that have none. Cost is linear
    in the bytes of that JSON, without a Python object per file unless a line is malformed.

    Parameters
    ----------
    files
        What the files are asked for their statistics.
    rows
        Ascending numbers of files; the result is aligned with them.
    leaves
        Physical path and current type of each wanted column. Bounds come only for types that have them
        (`has_bounds`), null counts for all. Text and typed values of an older, narrower type are widened.

    Source: PROTOCOL.md, "Per-file Statistics"; protocol-checklist ST-R-02 to ST-R-12.
    """
    bounded = [(path, kind) for path, kind in leaves if has_bounds(kind)]
    low = {path: StatisticsLeaf(("minValues", *path), kind) for path, kind in bounded}
    high = {path: StatisticsLeaf(("maxValues", *path), kind) for path, kind in bounded}
    nulls = {path: StatisticsLeaf(("nullCount", *path), LONG) for path, _ in leaves}
    needed = [_NUM_RECORDS, _TIGHT_BOUNDS, *low.values(), *high.values(), *nulls.values()]
    values = _load(files, rows, needed)
    return Statistics(
        num_records=values[_NUM_RECORDS],
        tight_bounds=values[_TIGHT_BOUNDS].fill_null(TRUE),
        counts_nan=values[_TIGHT_BOUNDS].fill_null(FALSE),
        min={path: values[leaf] for path, leaf in low.items()},
        max={path: values[leaf] for path, leaf in high.items()},
        null_count={path: values[leaf] for path, leaf in nulls.items()},
    )


def _load(
    files: FilesToPrune, rows: pa.Int64Array, leaves: Sequence[StatisticsLeaf]
) -> dict[StatisticsLeaf, pa.Array]:
    typed = _typed(files, rows, leaves)
    settled = pa.repeat(FALSE, len(rows))
    # A name with a dot cannot be asked from the typed form, so then that form settles no file.
    if not any(leaf.has_dots for leaf in leaves):
        for column in typed.values():
            settled = pc.or_(settled, column.is_valid())
    if settled.false_count == 0:
        return {leaf: _or_nulls(typed.get(leaf), leaf, len(rows)) for leaf in leaves}
    open_ = pc.invert(settled)
    parsed = _leaves_of_texts(files, rows.filter(open_), leaves)
    if open_.true_count == len(rows) and not typed:
        return parsed
    return {leaf: _merge(typed.get(leaf), parsed[leaf], open_) for leaf in leaves}


def _leaves_of_texts(
    files: FilesToPrune, rows: pa.Int64Array, leaves: Sequence[StatisticsLeaf]
) -> dict[StatisticsLeaf, pa.Array]:
    """The leaves from JSON text; of all files where that is asked for most of them, and then kept for the next time."""
    names = {leaf: leaf.key for leaf in leaves}
    by_key = files.kept(list(names.values()))
    if by_key is None:
        if 2 * len(rows) <= files.num_rows:
            return _parsed(files.stats_texts(rows), leaves)
        everyone = true_rows(pa.repeat(TRUE, files.num_rows))
        parsed = _parsed(files.stats_texts(everyone), leaves)
        by_key = {names[leaf]: column for leaf, column in parsed.items()}
        files.keep(by_key)
    columns = {leaf: by_key[name] for leaf, name in names.items()}
    if len(rows) == files.num_rows:
        return columns
    return {leaf: column.take(rows) for leaf, column in columns.items()}


def _parsed(pieces: Iterable[pa.Array], leaves: Sequence[StatisticsLeaf]) -> dict[StatisticsLeaf, pa.Array]:
    """The leaves of texts that come piece by piece; of the texts no more than a piece is kept."""
    parts = [parsed_leaves(piece, leaves) for piece in pieces]
    if len(parts) == 1:
        return parts[0]
    return {leaf: pa.concat_arrays([piece[leaf] for piece in parts]) for leaf in leaves}


def _or_nulls(column: pa.Array | None, leaf: StatisticsLeaf, length: int) -> pa.Array:
    return pa.nulls(length, arrow_type(leaf.type)) if column is None else column


def _merge(typed: pa.Array | None, parsed: pa.Array, from_json: pa.BooleanArray) -> pa.Array:
    """Spread the parsed values over the rows they belong to; both forms of one leaf are coalesced."""
    spread = pc.replace_with_mask(pa.nulls(len(from_json), parsed.type), from_json, parsed)
    return spread if typed is None else pc.coalesce(typed, spread)


def _typed(
    files: FilesToPrune, rows: pa.Int64Array, leaves: Sequence[StatisticsLeaf]
) -> dict[StatisticsLeaf, pa.Array]:
    """The leaves that a checkpoint holds in typed form, null for files that are not from it."""
    askable = [leaf for leaf in leaves if not leaf.has_dots]
    table = files.stats_parsed([leaf.dotted for leaf in askable], rows)
    if table is None:
        return {}
    stored = [leaf for leaf in askable if leaf.dotted in table.column_names]
    return {leaf: convert_leaf(_flat(table[leaf.dotted]), leaf) for leaf in stored}


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def parsed_leaves(text: pa.Array, leaves: Sequence[StatisticsLeaf]) -> dict[StatisticsLeaf, pa.Array]:
    tree: dict[str, Any] = {}
    for leaf in leaves:
        level = tree
        for name in leaf.path[:-1]:
            level = level.setdefault(name, {})
        level[leaf.path[-1]] = _json_type(leaf.type)
    table = parse_lines(text, pa.schema(_fields(tree)))
    out = {}
    for leaf in leaves:
        column = table[leaf.path[0]]
        for name in leaf.path[1:]:
            column = field_of(column, name)
        out[leaf] = convert_leaf(_flat(column), leaf)
    return out


def _fields(tree: Mapping[str, Any]) -> list[pa.Field]:
    return [
        pa.field(name, pa.struct(_fields(node)) if isinstance(node, dict) else node)
        for name, node in tree.items()
    ]


def _json_type(data_type: DataType) -> pa.DataType:
    """The type to read from JSON: the widest integer, text for dates and times, else the column's own."""
    name = str(data_type)
    if name in _INTEGERS:
        return pa.int64()
    return pa.string() if name in _TEMPORAL else arrow_type(data_type)


def convert_leaf(values: pa.Array, leaf: StatisticsLeaf) -> pa.Array:
    """Give values the column's type; what does not fit is unknown."""
    target = arrow_type(leaf.type)
    if values.type == target:
        return _of_precision(values) if isinstance(leaf.type, DecimalType) else values
    name = str(leaf.type)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
        if name in _TEMPORAL:
            return _from_text(values, name, upper=leaf.path[0] == "maxValues")
        if target == pa.string():
            return values
    elif name in _INTEGERS and pa.types.is_integer(values.type):
        return _integers(values, target)
    elif _widens(values.type, target):
        return _widen(values, target)
    from delta_ds.events.commands import STATISTICS_OF_OTHER_TYPE

    STATISTICS_OF_OTHER_TYPE.log(leaf=leaf.dotted, found=values.type, wanted=target)
    return pa.nulls(len(values), target)


def _of_precision(values: pa.Array) -> pa.Array:
    """Arrow's JSON reader lets numbers pass that have a digit too many, such as 1e20 for decimal(38,18)."""
    largest = Decimal(10**values.type.precision - 1).scaleb(-values.type.scale, _WIDE)
    most = texts([f"{largest:f}"])[0].cast(values.type)
    fits = pc.and_(pc.less_equal(values, most), pc.greater_equal(values, pc.negate(most)))
    return values if pc.all(fits).as_py() is not False else pc.if_else(fits, values, _null(values.type))


def _null(kind: pa.DataType) -> pa.Scalar:
    return pa.nulls(1, kind)[0]


def _integers(values: pa.Array, target: pa.DataType) -> pa.Array:
    if values.type.bit_width > target.bit_width:
        limit = 1 << (target.bit_width - 1)
        least, most = scalar_of(-limit, LONG), scalar_of(limit - 1, LONG)
        fits = pc.and_(pc.greater_equal(values, least), pc.less_equal(values, most))
        values = pc.if_else(fits, values, _null(values.type))
    return values.cast(target)


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_decimal(target):
        return bool(pa.types.is_integer(source) or pa.types.is_decimal(source))
    if pa.types.is_floating(target):
        narrower = pa.types.is_floating(source) and source.bit_width < target.bit_width
        return bool(narrower or (pa.types.is_integer(source) and source.bit_width <= 32))
    if pa.types.is_date(target):
        return bool(pa.types.is_date(source) or pa.types.is_int32(source))
    if pa.types.is_timestamp(target):
        # Nanoseconds without a zone come from INT96, which silently wraps outside 1677 to 2262.
        wraps = pa.types.is_timestamp(source) and source.unit == "ns" and source.tz is None
        dates = pa.types.is_date(source) and target.tz is None
        return bool(dates or (pa.types.is_timestamp(source) and not wraps))
    return False


def _widen(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(target):
        if pa.types.is_integer(values.type):
            values = values.cast(pa.decimal128(38, 0))
        return _cast_each(values, target)
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(target)
    return values.cast(target)


def _cast_each(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast what can be cast, by halving around what cannot."""
    try:
        return values.cast(target)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, target)
    half = len(values) // 2
    halves = [_cast_each(values.slice(0, half), target), _cast_each(values.slice(half), target)]
    return pa.concat_arrays(halves)


def _from_text(text: pa.StringArray, name: str, *, upper: bool) -> pa.Array:
    text = pc.if_else(pc.match_substring_regex(text, _DATE_START), text, _null(pa.string()))
    if name == "date":
        return _cast_each(text, pa.date32())
    if name == "timestamp":
        return _instants(text, upper)
    # Some writers end local times with a Z that means nothing.
    return _cast_each(pc.replace_substring_regex(_microseconds(text), "Z$", ""), pa.timestamp("us"))


def _microseconds(text: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(text, _NANOSECONDS, r"\1")


def _instants(text: pa.StringArray, upper: bool) -> pa.Array:
    target = pa.timestamp("us", "UTC")
    try:
        out = text.cast(target)
    except pa.ArrowInvalid:
        out = _mixed_instants(_microseconds(text), target, upper)
    earliest = pc.min(out.cast(pa.int64())).as_py()
    if earliest is not None and earliest < _LAST_ODD_OFFSET_US:
        out = pc.if_else(pc.match_substring_regex(text, _ODD_OFFSET), out, _null(target))
    return out


def _mixed_instants(text: pa.StringArray, target: pa.DataType, upper: bool) -> pa.Array:
    """Instants where some texts name no zone: those could be of any zone, a day either way."""
    zoned = pc.match_substring_regex(text, _ZONED)
    nothing = _null(pa.string())
    named = _cast_each(pc.if_else(zoned, text, nothing), target)
    local = _cast_each(pc.if_else(zoned, nothing, text), pa.timestamp("us")).view(pa.int64())
    slack = _DAY_US if upper else -_DAY_US
    return pc.coalesce(named, pc.add(local, scalar_of(slack, LONG)).view(target))
