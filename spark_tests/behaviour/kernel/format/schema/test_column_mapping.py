"""Column ids and physical names: given once, to every field, for good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.schema.column_mapping import assign, every_field, highest_id, strip
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import INTEGER, ArrayType, DataType, MapType, StructField, StructType

NAMES = st.text("ab ü.,", min_size=1, max_size=4)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.builds(StructField, NAMES, inner, st.booleans(), st.just({"comment": "kept"}))
    return st.lists(fields, max_size=3).map(lambda found: StructType(tuple(found)))


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.just(INTEGER),
    lambda inner: structs(inner) | st.builds(ArrayType, inner) | st.builds(MapType, inner, inner),
    max_leaves=8,
)
SCHEMAS = structs(TYPES)


def ids(schema: StructType) -> list[int]:
    return [f.metadata[FIELD_ID] for f in every_field(schema)]


@given(SCHEMAS, st.integers(0, 100), st.booleans())
def test_ids_are_unique_and_beyond_all_that_were_given_out(schema: StructType, used: int, keep: bool) -> None:
    assigned, highest = assign(schema, used, keep_names=keep)
    assert ids(assigned) == list(range(used + 1, highest + 1))
    assert highest_id(assigned) in (highest, 0)
    for before, after in zip(every_field(schema), every_field(assigned), strict=True):
        name = after.metadata[PHYSICAL_NAME]
        assert name == before.name if keep else name.startswith("col-")
        assert after.metadata["comment"] == "kept"
        assert (after.name, after.nullable) == (before.name, before.nullable)


@given(SCHEMAS, st.integers(0, 100))
def test_ids_that_are_there_stay(schema: StructType, used: int) -> None:
    assigned, highest = assign(schema, used, keep_names=False)
    assert assign(assigned, highest, keep_names=True) == (assigned, highest)
    more = StructType((StructField("new", INTEGER), *assigned))
    extended, after = assign(more, highest, keep_names=False)
    assert extended.fields[1:] == assigned.fields
    assert (ids(extended)[0], after) == (highest + 1, highest + 1)


@given(SCHEMAS, st.booleans())
def test_stripping_undoes_assigning(schema: StructType, keep: bool) -> None:
    stripped = strip(assign(schema, 0, keep_names=keep)[0])
    assert stripped == schema
    assert [dict(f.metadata) for f in every_field(stripped)] == [
        dict(f.metadata) for f in every_field(schema)
    ]


def test_an_id_in_the_schema_counts_even_if_the_property_is_lower() -> None:
    schema = StructType((StructField("a", INTEGER, True, {FIELD_ID: 9}), StructField("b", INTEGER)))
    assigned, highest = assign(schema, 3, keep_names=True)
    assert (ids(assigned), highest) == ([9, 10], 10)


@pytest.mark.parametrize("number", ["1", None, True, 1.5])
def test_an_id_that_is_no_number_is_named(number: object) -> None:
    with pytest.raises(SchemaError, match="'a'"):
        highest_id(StructType((StructField("a", INTEGER, True, {FIELD_ID: number}),)))
