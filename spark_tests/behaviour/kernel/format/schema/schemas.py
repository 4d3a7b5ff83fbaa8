"""Schemas for tests: a short way to write them, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from delta_ds.kernel.format.schema.types import (
    PRIMITIVES,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)


def struct(**fields: DataType | str) -> StructType:
    """A struct of nullable fields, types by name or as values."""
    return StructType(tuple(StructField(name, typed(kind)) for name, kind in fields.items()))


def typed(kind: DataType | str) -> DataType:
    return PRIMITIVES[kind] if isinstance(kind, str) else kind


PLAIN = st.sampled_from([t for t in PRIMITIVES.values() if t != VOID]) | st.builds(
    DecimalType, st.integers(10, 38), st.integers(0, 10)
)
NAMES = st.sampled_from(["a", "b", "c", "D", "e f", "g.h", "ü"])


def _structs(inside: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.lists(
        st.builds(StructField, NAMES, inside, st.booleans()),
        min_size=1,
        max_size=3,
        unique_by=lambda f: f.name.lower(),
    )
    return fields.map(lambda fs: StructType(tuple(fs)))


TYPES: st.SearchStrategy[DataType] = st.recursive(
    PLAIN,
    lambda inside: (
        _structs(inside)
        | st.builds(ArrayType, inside, st.booleans())
        | st.builds(MapType, inside, inside, st.booleans())
    ),
    max_leaves=4,
)
SCHEMAS = _structs(TYPES)
