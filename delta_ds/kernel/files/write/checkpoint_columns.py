"""Typed columns of a checkpoint: `stats_parsed` and `partitionValues_parsed` from text, and back.

Implements `log.checkpoint_write.schema.TypedColumns` with what this room knows of both.

Source: PROTOCOL.md, "Checkpoint Schema", "Per-file Statistics"; protocol-checklist CKP-W-09, CKP-R-10, ST-*.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.statistics import StatisticsColumn, statistics_columns
from delta_ds.kernel.files.write.write_spec import write_spec
from delta_ds.kernel.format.expressions.arrays import array_of, scalar_of
from delta_ds.kernel.format.features import DELETION_VECTORS
from delta_ds.kernel.format.schema.types import BOOLEAN, LONG, STRING, VOID, DataType, arrow_type
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.format.values.partition_values import parse
from delta_ds.kernel.format.values.statistics import StatisticsLeaf, convert_leaf, parsed_leaves
from delta_ds.records import dataclass

_Tree = dict[str, Any]


def typed_columns(state: TableState) -> CheckpointColumns:
    """The typed columns of a table's checkpoints: of the columns that get statistics, by physical names.

    `tightBounds` is among them where the table may have deletion vectors, as in delta-spark.
    """
    plan = write_spec(state)
    columns = [c for c in statistics_columns(plan, file_columns(plan, none_will_do=True)) if c.type != VOID]
    names = state.physical_partition_columns
    fields = [state.schema.find(name) for name in state.partition_columns]
    partitions = {n: f.type for n, f in zip(names, fields, strict=True) if f is not None}
    return CheckpointColumns(_leaves(columns, state.supports(DELETION_VECTORS)), partitions)


def _leaves(columns: Sequence[StatisticsColumn], tight_bounds: bool) -> tuple[StatisticsLeaf, ...]:
    bounded = [c for c in columns if c.bounded]
    out = [StatisticsLeaf(("numRecords",), LONG)]
    out += [StatisticsLeaf((side, *c.path), c.type) for side in ("minValues", "maxValues") for c in bounded]
    out += [StatisticsLeaf(("nullCount", *c.path), LONG) for c in columns]
    return (*out, StatisticsLeaf(("tightBounds",), BOOLEAN)) if tight_bounds else tuple(out)


@dataclass(frozen=True, slots=True)
class CheckpointColumns:
    """See `TypedColumns`.

    Attributes
    ----------
    leaves
        The leaves of the statistics struct, in order.
    partition_types
        The types of the partition columns by physical name, in order of partitioning.
    """

    leaves: tuple[StatisticsLeaf, ...]
    partition_types: Mapping[str, DataType]

    @property
    def statistics(self) -> pa.StructType:
        """The type of `add.stats_parsed`."""
        return _struct_type(self._tree())

    @property
    def partitions(self) -> pa.StructType | None:
        """The type of `add.partitionValues_parsed`; None for an unpartitioned table."""
        if not self.partition_types:
            return None
        return pa.struct([(name, arrow_type(kind)) for name, kind in self.partition_types.items()])

    def parse_statistics(self, text: pa.StringArray) -> pa.StructArray:
        """JSON statistics to `statistics`; null where there is no text, or no object in it."""
        if text.null_count == len(text):
            return pa.nulls(len(text), self.statistics)
        values = parsed_leaves(text, self.leaves)
        return _struct_of(self._tree(), (), lambda leaf: values[leaf], pc.is_null(text))

    def fit_statistics(self, parsed: pa.StructArray) -> pa.StructArray:
        """Typed statistics of an older schema of the table to `statistics`; what does not fit is unknown."""

        def fitted(leaf: StatisticsLeaf) -> pa.Array:
            found = _descend(parsed, leaf.path)
            return (
                pa.nulls(len(parsed), arrow_type(leaf.type)) if found is None else convert_leaf(found, leaf)
            )

        return _struct_of(self._tree(), (), fitted, pc.is_null(parsed))

    def statistics_text(self, parsed: pa.StructArray) -> pa.StringArray:
        """Typed statistics as JSON text; null where the struct is."""
        return statistics_text(parsed)

    def parse_partitions(self, values: pa.MapArray) -> pa.StructArray:
        """Partition values to `partitions`; timestamps without a zone are in UTC."""
        columns = []
        for name, kind in self.partition_types.items():
            texts = pc.map_lookup(values, _text(name), "first").cast(pa.string())
            columns.append(parse(texts, kind))
        return pa.StructArray.from_arrays(columns, fields=list(self.partitions or ()))

    def _tree(self) -> _Tree:
        tree: _Tree = {"numRecords": None, "minValues": {}, "maxValues": {}, "nullCount": {}}
        for leaf in self.leaves:
            level = tree
            for name in leaf.path[:-1]:
                level = level.setdefault(name, {})
            level[leaf.path[-1]] = leaf
        # A struct without fields cannot stand in Parquet.
        return {name: node for name, node in tree.items() if node != {}}


_NULL_TEXT = pa.nulls(1, pa.string())[0]


def _text(value: str) -> pa.StringScalar:
    return array_of([value], STRING)[0]


def statistics_text(parsed: pa.StructArray) -> pa.StringArray:
    """Typed statistics as JSON text: of all columns that they are of, exactly; null where the struct is."""
    text = _json(parsed)
    empty = pa.repeat(_text("{}"), len(parsed))
    return pc.if_else(pc.is_valid(parsed), pc.coalesce(text, empty), _NULL_TEXT)


def _struct_type(tree: _Tree) -> pa.StructType:
    return pa.struct(
        [
            (name, _struct_type(node) if isinstance(node, dict) else arrow_type(node.type))
            for name, node in tree.items()
        ]
    )


def _struct_of(
    tree: _Tree, path: tuple[str, ...], values: Any, absent: pa.BooleanArray | None
) -> pa.StructArray:
    """A struct from its leaves; `absent` rows of the outermost are null."""
    children = [
        _struct_of(node, (*path, name), values, None) if isinstance(node, dict) else values(node)
        for name, node in tree.items()
    ]
    return pa.StructArray.from_arrays(children, fields=list(_struct_type(tree)), mask=absent)


def _descend(values: pa.Array, path: Sequence[str]) -> pa.Array | None:
    for name in path:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return None
        values = pc.struct_field(values, values.type.get_field_index(name))
    return None if pa.types.is_nested(values.type) else values


# ---------------------------------------------------------------- to JSON


def _json(values: pa.Array) -> pa.StringArray:
    """JSON text of values; null for null, and for a struct that holds nothing."""
    kind = values.type
    if pa.types.is_struct(kind):
        members = []
        for index, field in enumerate(kind):
            name = _text(json.dumps(field.name, ensure_ascii=False) + ":")
            members.append(
                pc.binary_join_element_wise(name, _json(pc.struct_field(values, index)), _text(""))
            )
        if not members:
            return pa.nulls(len(values), pa.string())
        # Arrow drops rows with nothing to join, so each begins with an empty text, and thus with a comma.
        joined = pc.binary_join_element_wise(_text(""), *members, _text(","), null_handling="skip")
        inside = pc.utf8_slice_codeunits(joined, 1)
        wrapped = pc.binary_join_element_wise(_text("{"), inside, _text("}"), _text(""))
        return pc.if_else(pc.equal(joined, _text("")), _NULL_TEXT, wrapped)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quote(values.cast(pa.string()))
    if pa.types.is_date(kind):
        return _in_quotes(_readable(values.cast(pa.string())))
    if pa.types.is_timestamp(kind):
        return _in_quotes(_readable(_timestamps(values)))
    if pa.types.is_floating(kind):
        return _floats(values)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string())
    return pa.nulls(len(values), pa.string())  # binary has no text that readers agree on


def _in_quotes(text: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise(_text('"'), text, _text('"'), _text(""))


def _quote(text: pa.StringArray) -> pa.StringArray:
    odd = pc.match_substring_regex(text, r'["\\\x00-\x1f]')
    if not pc.any(odd, min_count=0).as_py():
        return _in_quotes(text)
    # Only texts with such letters are looked at one by one.
    escaped = [json.dumps(value, ensure_ascii=False) for value in text.filter(odd).to_pylist()]
    plain = _in_quotes(text)
    return pc.replace_with_mask(plain, odd.fill_null(scalar_of(False, BOOLEAN)), array_of(escaped, STRING))


def _readable(dates: pa.StringArray) -> pa.StringArray:
    """Dates and times of the years that every reader understands, as in `statistics_json.value_text`."""
    return pc.if_else(pc.match_substring_regex(dates, r"^\d{4}-"), dates, _NULL_TEXT)


def _timestamps(values: pa.Array) -> pa.StringArray:
    """ISO 8601 with milliseconds, or microseconds where there are any; `Z` for instants."""
    zone = "Z" if values.type.tz else ""
    micros = values.cast(pa.timestamp("us", values.type.tz), safe=False)
    exact = pc.strftime(micros.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    exact = pc.replace_substring_regex(exact, r"(\.\d{3})000$", r"\1")
    return pc.binary_join_element_wise(exact, _text(zone), _text(""))


def _floats(values: pa.Array) -> pa.StringArray:
    text = values.cast(pa.string())
    odd = pc.and_(values.is_valid(), pc.invert(pc.is_finite(values)))
    if not pc.any(odd, min_count=0).as_py():
        return text
    spelled = pc.replace_substring_regex(pc.replace_substring_regex(text, "nan", "NaN"), "inf", "Infinity")
    return pc.if_else(odd, _in_quotes(spelled), text)
