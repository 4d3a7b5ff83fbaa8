"""Arrow types to Delta types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import VARIANT, ArrayType, StructField, StructType, arrow_schema


def test_every_arrow_type_with_a_counterpart_gets_it() -> None:
    nested = pa.struct([("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.decimal128(10, 2)))])
    schema = pa.schema(
        [("n", nested), ("t", pa.timestamp("us", "UTC")), ("z", pa.timestamp("us")), ("b", pa.binary())]
    )
    assert str(schema_from_arrow(schema)) == (
        "struct<n:struct<a:array<integer>,m:map<string,decimal(10,2)>>,t:timestamp,z:timestamp_ntz,b:binary>"
    )


def test_arrow_type_without_a_counterpart_is_refused() -> None:
    with pytest.raises(ValueError, match="uint64"):
        schema_from_arrow(pa.schema([("u", pa.uint64())]))


def test_variants_of_the_kernel_are_variants() -> None:
    schema = arrow_schema(StructType((StructField("v", VARIANT), StructField("l", ArrayType(VARIANT)))))
    assert str(schema_from_arrow(schema)) == "struct<v:variant,l:array<variant>>"
    plain = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    assert (
        str(schema_from_arrow(pa.schema([("v", plain)]))) == "struct<v:struct<value:binary,metadata:binary>>"
    )
