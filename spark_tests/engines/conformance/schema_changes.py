"""Tables whose columns change, with and without column mapping and a change feed, and what is asked of each of them.

What delta-spark answers is recorded in `corpora/schema_changes`, by
`spark_tests.engines.interop.record_schema_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.columns import add_columns, drop_columns, rename_column
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.kernel.transaction.alter.schema_change import replace_columns

MODES = ("none", "name", "id")
# What drops columns together with files, which tables with column mapping and a feed do not allow.
_REFUSED = ("overwrite with one less", "overwrite with another type", "overwrite in another case")
# Ids and names differ in how files are read: these tell it.
_BY_ID = (
    "add",
    "add in array",
    "rename",
    "swap names",
    "drop",
    "drop, add",
    "widen",
    "overwrite with one more",
    "merge schema in array",
)
Change = Callable[[DeltaLog], object]


# --- rows


def rows(schema: pa.Schema, *numbers: int) -> pa.Table:
    """A row for each number, with values made of it."""
    return pa.table(
        {column.name: pa.array([_value(column.type, n) for n in numbers], column.type) for column in schema},
        schema=schema,
    )


def _value(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_struct(kind):
        return {part.name: _value(part.type, number) for part in kind}
    if pa.types.is_map(kind):
        return [(_value(kind.key_type, number), _value(kind.item_type, number))]
    if pa.types.is_list(kind):
        return [_value(kind.value_type, number)]
    if pa.types.is_null(kind):
        return None
    return f"{number}" if pa.types.is_string(kind) else number


def arrow_schema(log: DeltaLog) -> pa.Schema:
    """The columns of a table as rows for it have them."""
    return log.snapshot().scan().to_arrow().schema


# --- changes


_PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
_NESTED: dict[str, tuple[pa.DataType, str]] = {
    "struct": (_PAIR, "c"),
    "array": (pa.list_(_PAIR), "c.element"),
    "map value": (pa.map_(pa.string(), _PAIR), "c.value"),
    "map key": (pa.map_(_PAIR, pa.string()), "c.key"),
    "deep": (pa.struct([("in", pa.list_(pa.map_(pa.string(), _PAIR)))]), "c.in.element.value"),
}


@dataclass(frozen=True)
class Evolution:
    """A change of a table's columns.

    Attributes
    ----------
    column
        The type of the column `c`, which the table has beside `id` and `n`.
    apply
        Makes the change, in one commit or several.
    needs_mapping
        Whether it is refused without column mapping.
    partitioned
        Whether the table is partitioned by `n`.
    properties
        Of the table.
    """

    column: pa.DataType
    apply: Change
    needs_mapping: bool = False
    partitioned: bool = False
    properties: dict[str, str] = field(default_factory=dict)


def _added(name: str = "z", **where: Any) -> Change:
    return lambda log: add_columns(log, StructType((StructField(name, LONG),)), **where)


def _renamed(old: str, new: str) -> Change:
    return lambda log: rename_column(log, old, new)


def _dropped(name: str) -> Change:
    return lambda log: drop_columns(log, [name])


def _altered(name: str, **how: Any) -> Change:
    return lambda log: alter_column(log, name, **how)


def _with(properties: dict[str, str]) -> Change:
    return lambda log: set_properties(log, properties)


def _in_turn(*changes: Change) -> Change:
    def apply(log: DeltaLog) -> None:
        for change in changes:
            change(log)

    return apply


def _overwritten(schema: pa.Schema, **options: str) -> Change:
    def apply(log: DeltaLog) -> None:
        log.write(rows(schema, 7), "overwrite", {"overwriteSchema": "true", **options})

    return apply


def _appended(kind: pa.DataType) -> Change:
    def apply(log: DeltaLog) -> None:
        wide = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("c", kind), ("z", pa.int64())])
        log.write(rows(wide, 7), options={"mergeSchema": "true"})

    return apply


def _wider(kind: pa.DataType) -> pa.DataType:
    """The type with one more field in each innermost struct."""
    if kind == _PAIR:
        return pa.struct([*kind, pa.field("z", pa.int64())])
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _wider(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_wider(kind.key_type), _wider(kind.item_type))
    return pa.list_(_wider(kind.value_type)) if pa.types.is_list(kind) else kind


def _replaced(log: DeltaLog) -> None:
    schema = log.snapshot().schema
    plain = [StructField(f.name, f.type, f.nullable) for f in reversed(schema.fields)]
    replace_columns(log, StructType((*plain, StructField("z", LONG))))


_TEXT = pa.string()
_WIDENING = {"delta.enableTypeWidening": "true"}
_MAPPED = {"delta.columnMapping.mode": "name"}


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


EVOLUTIONS: dict[str, Evolution] = {
    "nothing": Evolution(_TEXT, lambda log: None),
    "add": Evolution(_TEXT, _added()),
    "add first": Evolution(_TEXT, _added(first=True)),
    **{f"add in {n}": Evolution(kind, _added(parent=inner)) for n, (kind, inner) in _NESTED.items()},
    "rename": Evolution(_TEXT, _renamed("c", "d"), needs_mapping=True),
    "rename back": Evolution(_TEXT, _in_turn(_renamed("c", "d"), _renamed("d", "c")), needs_mapping=True),
    "swap names": Evolution(
        pa.int32(),
        _in_turn(_renamed("c", "t"), _renamed("n", "c"), _renamed("t", "n")),
        needs_mapping=True,
    ),
    "rename partition column": Evolution(_TEXT, _renamed("n", "d"), needs_mapping=True, partitioned=True),
    **{
        f"rename in {n}": Evolution(kind, _renamed(f"{inner}.a", "d"), needs_mapping=True)
        for n, (kind, inner) in _NESTED.items()
    },
    "drop": Evolution(_TEXT, _dropped("c"), needs_mapping=True),
    "drop, partitioned": Evolution(_TEXT, _dropped("c"), needs_mapping=True, partitioned=True),
    **{
        f"drop in {n}": Evolution(kind, _dropped(f"{inner}.a"), needs_mapping=True)
        for n, (kind, inner) in _NESTED.items()
        if n != "map key"
    },
    "drop, add": Evolution(pa.int64(), _in_turn(_dropped("c"), _added("c")), needs_mapping=True),
    "drop, add of another type": Evolution(_TEXT, _in_turn(_dropped("c"), _added("c")), needs_mapping=True),
    "drop, add in struct": Evolution(
        _PAIR, _in_turn(_dropped("c.a"), _added("a", parent="c")), needs_mapping=True
    ),
    "add, drop": Evolution(_TEXT, _in_turn(_added("z"), _dropped("z")), needs_mapping=True),
    "rename, add": Evolution(pa.int64(), _in_turn(_renamed("c", "d"), _added("c")), needs_mapping=True),
    "widen": Evolution(pa.int32(), _altered("c", data_type=LONG), properties=_WIDENING),
    "widen partition column": Evolution(
        _TEXT, _altered("n", data_type=LONG), properties=_WIDENING, partitioned=True
    ),
    **{
        f"widen in {n}": Evolution(kind, _altered(f"{inner}.a", data_type=LONG), properties=_WIDENING)
        for n, (kind, inner) in _NESTED.items()
    },
    "move": Evolution(_TEXT, _altered("c", first=True)),
    "move in struct": Evolution(_PAIR, _altered("c.b", first=True)),
    "move in array": Evolution(pa.list_(_PAIR), _altered("c.element.b", first=True)),
    "comment": Evolution(_TEXT, _altered("c", comment="x")),
    **{f"comment in {n}": Evolution(kind, _altered(f"{inner}.a", comment="x")) for n, (kind, inner) in _NESTED.items()},
    "replace columns": Evolution(_TEXT, _replaced),
    "overwrite": Evolution(_TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32(), c=_TEXT))),
    "overwrite with one more": Evolution(
        _TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32(), c=_TEXT, z=pa.int64()))
    ),
    "overwrite with one less": Evolution(_TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32()))),
    "overwrite with another type": Evolution(
        _TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32(), c=pa.int64()))
    ),
    "overwrite in another order": Evolution(
        _TEXT, _overwritten(_columns(c=_TEXT, n=pa.int32(), id=pa.int64()))
    ),
    "overwrite in another case": Evolution(
        _TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32(), C=_TEXT))
    ),
    "overwrite, other partitions": Evolution(
        _TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32(), c=_TEXT), partitionBy="c"), partitioned=True
    ),
    "overwrite, no partitions": Evolution(
        _TEXT, _overwritten(_columns(id=pa.int64(), n=pa.int32(), c=_TEXT)), partitioned=True
    ),
    "merge schema": Evolution(_TEXT, _appended(_TEXT)),
    **{
        f"merge schema in {n}": Evolution(kind, _appended(_wider(kind)))
        for n, (kind, _) in _NESTED.items()
        if n != "map key"
    },
    "mapping": Evolution(_TEXT, _with(_MAPPED)),
    "mapping, rename": Evolution(
        _TEXT, _in_turn(_with(_MAPPED), _renamed("c", "d"))
    ),
    "mapping, add": Evolution(_TEXT, _in_turn(_with(_MAPPED), _added())),
    "void gets a type": Evolution(pa.null(), _appended(_TEXT)),
    "property": Evolution(_TEXT, _with({"delta.logRetentionDuration": "interval 9 days"})),
}  # fmt: skip


# --- tables


@dataclass(frozen=True)
class Case:
    """A table: how it changes, its column mapping, and whether it has a change feed."""

    evolution: str
    mode: str
    feed: bool

    @property
    def name(self) -> str:
        return f"{self.evolution}, {self.mode}{', feed' if self.feed else ''}"


def cases() -> Iterator[Case]:
    for name, evolution in EVOLUTIONS.items():
        for mode in MODES:
            for feed in (True, False):
                if _is_asked(name, evolution, mode, feed):
                    yield Case(name, mode, feed)


def _is_asked(name: str, evolution: Evolution, mode: str, feed: bool) -> bool:
    turns_mapping_on = name.startswith("mapping")
    if mode == "none":
        return not evolution.needs_mapping and (feed or turns_mapping_on)
    if turns_mapping_on or (feed and name in _REFUSED):
        return False
    return mode == "name" or (feed and name in _BY_ID)


def make(case: Case, path: Path) -> DeltaLog:
    """Write the table of a case.

    Version 0 has no rows, version 1 has two. After the change come two more, and one is overwritten.
    """
    evolution = EVOLUTIONS[case.evolution]
    mapping = {} if case.mode == "none" else {"delta.columnMapping.mode": case.mode}
    feed = {"delta.enableChangeDataFeed": "true"} if case.feed else {}
    properties = {"delta.enableDeletionVectors": "false", **mapping, **feed, **evolution.properties}
    columns = _columns(id=pa.int64(), n=pa.int32(), c=evolution.column)
    log = DeltaLog(path)
    create_table(log, schema_from_arrow(columns), ["n"] if evolution.partitioned else [], properties)
    log.write(rows(columns, 1, 2))
    evolution.apply(log)
    now = arrow_schema(log)
    log.write(rows(now, 3, 4))
    log.write(rows(now, 3), "overwrite", {"replaceWhere": "id = 3"})
    return log
