"""Live files that exist only in memory, and statistics written to the protocol's rules.

Source: protocol-checklist ST-RW-01 to ST-W-14; the writer here shares no code with the package.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context
from typing import Any

import pyarrow as pa

from delta_ds.kernel.format.schema.types import DecimalType, StructField, StructType

_WIDE = Context(prec=80)
Row = Mapping[str, Any]


@dataclass
class MemoryFiles:
    """`FilesToPrune`, and `table`: `stats` text or None a file, typed statistics for some leaves."""

    stats: Sequence[str | None]
    partitions: Sequence[Mapping[str, str | None]] | None = None
    typed: Mapping[str, pa.Array] = field(default_factory=dict)
    asked_json: list[int] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        return len(self.stats)

    @property
    def table(self) -> pa.Table:
        columns: dict[str, Any] = {
            "path": pa.array([f"f{i}" for i in range(self.num_rows)], pa.string()),
            "size": pa.array([100 + i for i in range(self.num_rows)], pa.int64()),
        }
        if self.partitions is not None:
            names = sorted({name for values in self.partitions for name in values})
            kind = pa.struct([(name, pa.string()) for name in names])
            columns["partitionValues"] = pa.array(self.partitions, kind)
        return pa.table(columns)

    def partition_texts(self, physical: str) -> pa.Array:
        return pa.array(
            [values.get(physical) for values in self.partitions or [{}] * self.num_rows], pa.string()
        )

    def stats_texts(self, rows: pa.Array) -> Iterator[pa.Array]:
        self.asked_json.append(len(rows))
        yield pa.array(self.stats, pa.string()).take(rows)

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        return None

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """Nothing is kept."""

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Array | None = None) -> pa.Table | None:
        found = {leaf: self.typed[leaf] for leaf in leaves if leaf in self.typed}
        if not found:
            return None
        table = pa.table(found)
        return table if rows is None else table.take(rows)


def write_statistics(
    rows: Sequence[Row], schema: StructType, *, prefix: int = 32, tight: bool | None = None
) -> dict[str, Any]:
    """The statistics object of a file with these (physical) rows, as delta-spark writes it."""
    low, high, nulls = _columns(rows, schema, prefix)
    out = {"numRecords": len(rows), "minValues": low, "maxValues": high, "nullCount": nulls}
    return out if tight is None else {**out, "tightBounds": tight}


def to_json(statistics: Mapping[str, Any], **options: Any) -> str:
    """JSON text; decimals as numbers with all their digits."""
    holes: list[str] = []

    def hole(value: Any) -> str:
        holes.append(format(value, "f"))
        return f"@hole{len(holes) - 1}@"

    text = json.dumps(statistics, default=hole, **options)
    for i, number in enumerate(holes):
        text = text.replace(f'"@hole{i}@"', number)
    return text


def _columns(
    rows: Sequence[Row | None], schema: StructType, prefix: int
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for f in schema:
        values = [None if row is None else row[f.name] for row in rows]
        if isinstance(f.type, StructType):
            low[f.name], high[f.name], nulls[f.name] = _columns(values, f.type, prefix)
            continue
        present = [value for value in values if value is not None]
        nulls[f.name] = len(values) - len(present)
        if present and str(f.type) not in ("boolean", "binary"):
            smallest, largest = _extremes(present, prefix)
            low[f.name] = smallest
            if largest is not None:
                high[f.name] = largest
    return low, high, nulls


def foreign_statistics(rows: Sequence[Row], schema: StructType, *, prefix: int = 32) -> dict[str, Any]:
    """The statistics object as delta-rs writes it, from what Parquet's footers say.

    Decimals are doubles, NaN is left out, -0.0 and 0.0 are told apart, long texts are cut by bytes.
    """
    out = write_statistics(rows, schema, prefix=prefix)
    for f in schema:
        values = [row[f.name] for row in rows if row[f.name] is not None]
        if str(f.type) in ("float", "double"):
            values = sorted(v for v in values if not math.isnan(v) and not math.isinf(v))
            bounds = (-0.0 if values[0] == 0 else values[0], values[-1] + 0.0) if values else None
        elif isinstance(f.type, DecimalType) and values:
            scale = f.type.scale
            bounds = tuple(
                float(int(v.scaleb(scale, _WIDE))) / 10.0**scale for v in (min(values), max(values))
            )
        else:
            continue
        for side, number in zip(("minValues", "maxValues"), bounds or (None, None), strict=True):
            out[side].pop(f.name, None)
            if number is not None:
                out[side][f.name] = number
    return out


def _extremes(values: Sequence[Any], prefix: int) -> tuple[Any, Any]:
    first = values[0]
    if isinstance(first, str):
        ordered = sorted(values, key=lambda v: v.encode())
        return _cut(ordered[0], prefix), _cut_up(ordered[-1], prefix)
    if isinstance(first, float):
        ordered = sorted(values, key=lambda v: (math.isnan(v), v))
        return _float(ordered[0]), _float(ordered[-1])
    smallest, largest = min(values), max(values)
    if isinstance(first, dt.datetime):
        return tuple(v.isoformat(timespec="milliseconds") for v in (smallest, largest))
    if isinstance(first, dt.date):
        return smallest.isoformat(), largest.isoformat()
    return smallest, largest


def _float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return ("-Infinity" if value < 0 else "Infinity") if math.isinf(value) else value


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _cut(text: str, prefix: int) -> str:
    out = ""
    for letter in text:
        if _units(out + letter) > prefix:
            break
        out += letter
    return out


def _cut_up(text: str, prefix: int) -> str | None:
    """A prefix and a tie-breaker above whatever was cut off; None where there is no such."""
    out = _cut(text, prefix)
    if out == text:
        return text
    rest = text[len(out) :]
    while rest and rest[0] == "\U0010ffff":
        out, rest = out + rest[0], rest[1:]
        if _units(out) > 2 * prefix:
            return None
    if not rest:
        return out
    return out + ("\x7f" if rest[0] < "\x7f" else "\U0010ffff")


def struct(*fields: tuple[str, Any]) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in fields))


def kept(pruning: Any) -> list[int]:
    return list(pruning.rows.to_pylist())
