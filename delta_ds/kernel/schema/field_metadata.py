"""The keys of a field's `metadata` that the protocol and Spark give a meaning.

Source: PROTOCOL.md, "Column Metadata", "Column Mapping", "Identity Columns", "Generated Columns", "Column Invariants",
"Default Columns", "Type Change Metadata"; Spark, `CharVarcharUtils`, `ResolveDefaultColumnsUtils`, `DataType`.
"""

from __future__ import annotations

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
