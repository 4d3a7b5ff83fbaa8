"""The keys of a field's `metadata` that the protocol and Spark give a meaning.

Source: PROTOCOL.md, "Column Metadata", "Column Mapping", "Identity Columns", "Generated Columns", "Column Invariants",
"Default Columns", "Type Change Metadata"; Spark, `CharVarcharUtils`, `ResolveDefaultColumnsUtils`, `DataType`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# Column mapping
COLUMN_MAPPING_PREFIX = "delta.columnMapping."
FIELD_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"

# Values that writers compute
GENERATION_EXPRESSION = "delta.generationExpression"
SPARK_GENERATION_EXPRESSION = "GENERATION_EXPRESSION"  # as Spark's parser has it, in no table
IDENTITY_PREFIX = "delta.identity."
IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
IDENTITY_HIGH_WATER_MARK = "delta.identity.highWaterMark"
IDENTITY_ALLOW_EXPLICIT_INSERT = "delta.identity.allowExplicitInsert"
CURRENT_DEFAULT = "CURRENT_DEFAULT"  # of rows that are written from now on
EXISTS_DEFAULT = "EXISTS_DEFAULT"  # of rows in files from before the column

# What values may be
INVARIANTS = "delta.invariants"
TYPE_CHANGES = "delta.typeChanges"
CHAR_VARCHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS = "__COLLATIONS"

# A column with one of these has values where rows bring none.
OWN_VALUES = frozenset([CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_STEP])


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(bits: int) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and -(1 << bits - 1) <= value < 1 << bits - 1
        )

    return check


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


_kinds: dict[str, Callable[[Any], bool]] = {
    FIELD_ID: _is_number(32),
    PHYSICAL_NAME: _is_text,
    NESTED_IDS: lambda value: _is_map(value) and all(map(_is_number(32), value.values())),
    GENERATION_EXPRESSION: _is_text,
    IDENTITY_START: _is_number(64),
    IDENTITY_STEP: _is_number(64),
    IDENTITY_HIGH_WATER_MARK: _is_number(64),
    IDENTITY_ALLOW_EXPLICIT_INSERT: lambda value: isinstance(value, bool),
    CURRENT_DEFAULT: _is_text,
    EXISTS_DEFAULT: _is_text,
    INVARIANTS: _is_text,
    TYPE_CHANGES: lambda value: isinstance(value, list) and all(map(_is_map, value)),
    CHAR_VARCHAR_TYPE: _is_text,
    COLLATIONS: _is_map,
    "comment": _is_text,
}


def check_field_metadata(name: str, metadata: Any) -> None:
    """Refuse metadata of a field in which a key with a meaning has a value of another kind.

    Raises
    ------
    TypeError
        It has, or is no object; names the field and the key.
    """
    if not _is_map(metadata):
        raise TypeError(f"the metadata of field {name!r} is {metadata!r:.80}")
    for key, is_right in _kinds.items():
        value = metadata.get(key)
        if value is not None and not is_right(value):
            raise TypeError(f"{key} of field {name!r} is {value!r:.80}")
