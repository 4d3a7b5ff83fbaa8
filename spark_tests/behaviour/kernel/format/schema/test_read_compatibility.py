"""Which newer schemas can be read with the columns of an older one."""

from __future__ import annotations

import re

import pytest

from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.schema.version_changes import columns_as_before


def field(name: str, kind: object, nullable: bool = True, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def struct(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "fields": list(fields)}


def array(element: object, contains_null: bool = True) -> dict[str, object]:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def mapping(key: object, value: object, contains_null: bool = True) -> dict[str, object]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": contains_null}


def schema(*fields: dict[str, object]) -> StructType:
    return schema_of(struct(*fields))


def test_new_columns_are_left_out_at_any_depth_and_the_order_is_the_old_one() -> None:
    inner, more = struct(field("a", "long")), struct(field("z", "date"), field("a", "long"))
    nested = lambda kind: [  # noqa: E731
        field("s", kind), field("l", array(kind)), field("m", mapping("string", kind)), field("i", "integer")
    ]  # fmt: skip
    before, now = schema(*nested(inner)), schema(field("new", "string"), *reversed(nested(more)))
    assert columns_as_before(before, now) == before
    assert columns_as_before(before, before) == before


def test_what_the_newer_version_says_of_a_column_counts() -> None:
    found = columns_as_before(
        schema(field("id", "long")), schema(field("id", "long", False, **{"delta.columnMapping.id": 7}))
    )
    assert isinstance(found, StructType)
    assert (found.fields[0].nullable, found.fields[0].metadata) == (False, {"delta.columnMapping.id": 7})


@pytest.mark.parametrize(
    ("before", "now", "problem"),
    [
        (field("id", "long"), field("other", "long"), "id is gone"),
        (field("id", "long"), field("ID", "long"), "id is gone"),
        (field("id", "integer"), field("id", "long"), "type"),
        (field("id", "decimal(10,2)"), field("id", "decimal(12,2)"), "type"),
        (field("id", "long", False), field("id", "long"), "nulls"),
        (field("id", "string"), field("id", "string", __COLLATIONS={"id": "icu.UNICODE"}), "collation"),
        (field("s", struct(field("a", "long"))), field("s", struct(field("b", "long"))), r"s\.a is gone"),
        (field("s", struct(field("a", "long"))), field("s", "string"), "type"),
        (field("l", array("long", False)), field("l", array("long")), "null"),
        (field("l", array("integer")), field("l", array("long")), r"l\.element"),
        (field("m", mapping("string", "long", False)), field("m", mapping("string", "long")), "null"),
        (field("m", mapping("integer", "long")), field("m", mapping("long", "long")), r"m\.key"),
        (field("m", mapping("long", "integer")), field("m", mapping("long", "long")), r"m\.value"),
    ],
)
def test_what_contradicts_the_older_columns_is_named(
    before: dict[str, object], now: dict[str, object], problem: str
) -> None:
    found = columns_as_before(schema(field("k", "long"), before), schema(field("k", "long"), now))
    assert isinstance(found, list)
    assert len(found) == 1
    assert re.search(problem, found[0])
