"""Between Delta, Spark and Arrow schemas."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark_types

from delta_ds.exceptions import DataFileError, SchemaError
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
    arrow_schema,
)  # fmt: skip
from delta_ds.spark.base.schema import conform, find_columns, from_spark, select_columns, to_arrow, to_spark

INNER = StructType((StructField("x", INTEGER, False), StructField("y", STRING)))
TABLE = StructType(
    (
        StructField("id", LONG, False),
        StructField("Name", STRING),
        StructField("st", INNER),
        StructField("ar", ArrayType(INNER, False)),
        StructField("ma", MapType(STRING, INNER, False)),
    )
)


class TestToSpark:
    def test_what_only_delta_needs_is_left_out_at_every_level(self) -> None:
        mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c", "comment": "kept"}
        inner = StructType((StructField("x", INTEGER, metadata=mapped),))
        schema = StructType(
            (
                StructField("a", ArrayType(inner), metadata={**mapped, "CURRENT_DEFAULT": "1"}),
                StructField(
                    "g", LONG, metadata={"delta.generationExpression": "a", "delta.identity.start": 1}
                ),
                StructField("w", LONG, metadata={"delta.typeChanges": [{"toType": "long"}]}),
            )
        )
        fields = json.loads(to_spark(schema).json())["fields"]
        assert fields[0]["metadata"] == {"comment": "kept", "CURRENT_DEFAULT": "1"}
        assert fields[0]["type"]["elementType"]["fields"][0]["metadata"] == {"comment": "kept"}
        assert fields[1]["metadata"] == fields[2]["metadata"] == {}

    def test_nullability_stays(self) -> None:
        assert [f.nullable for f in to_spark(TABLE)] == [False, True, True, True, True]

    def test_collations_stay(self) -> None:
        field = StructField("c", STRING, metadata={"__COLLATIONS": {"c": "spark.UTF8_LCASE"}})
        assert to_spark(StructType((field,)))["c"].dataType == spark_types.StringType("UTF8_LCASE")

    def test_going_there_and_back_changes_nothing(self) -> None:
        assert from_spark(to_spark(TABLE)) == TABLE

    def test_arrow_schema_is_that_of_the_kernel(self) -> None:
        assert to_arrow(to_spark(TABLE)).equals(arrow_schema(TABLE))


class TestFindColumns:
    def test_names_match_ignoring_case_and_keep_the_asked_order(self) -> None:
        asked = spark_types.StructType().add("NAME", "string").add("ID", "long")
        assert find_columns(asked, TABLE, "t") == ["Name", "id"]

    def test_nested_types_may_differ_in_nullability(self) -> None:
        inner = spark_types.StructType().add("X", "integer").add("y", "string")
        asked = spark_types.StructType().add("ar", spark_types.ArrayType(inner, True))
        assert find_columns(asked, TABLE, "t") == ["ar"]

    def test_part_of_a_struct_cannot_be_asked_for(self) -> None:
        asked = spark_types.StructType().add("st", spark_types.StructType().add("x", "integer"))
        with pytest.raises(SchemaError, match="column 'st' has type"):
            find_columns(asked, TABLE, "t")

    def test_unknown_column_is_refused_with_the_columns_there_are(self) -> None:
        with pytest.raises(
            SchemaError, match="'zzz' of the given schema does not exist in t; it has id, Name"
        ):
            find_columns(spark_types.StructType().add("zzz", "integer"), TABLE, "t")


class TestSelectColumns:
    def test_columns_come_in_the_wanted_order(self) -> None:
        assert select_columns(["name", "ID"], TABLE, "t").names == ["Name", "id"]

    @pytest.mark.parametrize(
        ("names", "message"), [(["nam"], "did you mean 'Name'"), (["id", "ID"], "twice")]
    )
    def test_wrong_names_are_refused(self, names: list[str], message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            select_columns(names, TABLE, "t")


ROW = st.fixed_dictionaries({"x": st.integers(-5, 5), "y": st.none() | st.text(max_size=2)})
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 9),
            "Name": st.none() | st.text(max_size=2),
            "st": st.none() | ROW,
            "ar": st.none() | st.lists(ROW, max_size=3),
            "ma": st.none()
            | st.dictionaries(st.text(max_size=2), ROW, max_size=3).map(lambda d: list(d.items())),
        }
    ),
    max_size=6,
)


class TestConform:
    def test_batch_of_the_right_schema_keeps_its_arrays(self) -> None:
        batch = pa.RecordBatch.from_pylist(
            [{"id": 1, "Name": "a"}], schema=arrow_schema(StructType(TABLE.fields[:2]))
        )
        assert conform(batch, batch.schema, "t").equals(batch, check_metadata=True)

    def test_nulls_in_a_not_null_column_are_refused(self) -> None:
        batch = pa.record_batch({"a": pa.array([1, None])})
        with pytest.raises(DataFileError, match="'a' of t is NOT NULL, but a data file holds 1 nulls"):
            conform(batch, pa.schema([pa.field("a", pa.int64(), False)]), "t")

    def test_batch_without_columns_keeps_its_rows(self) -> None:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
        assert conform(batch, pa.schema([]), "t").num_rows == 2

    @given(rows=ROWS, start=st.integers(0, 3), length=st.integers(0, 4))
    def test_nested_names_and_nullability_change_but_no_value(
        self, rows: list[dict[str, object]], start: int, length: int
    ) -> None:
        batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(TABLE)).slice(start, length)
        inner = spark_types.StructType().add("X", "integer").add("Y", "string")
        asked = (
            spark_types.StructType()
            .add("id", "long")
            .add("name", "string")
            .add("st", inner)
            .add("ar", spark_types.ArrayType(inner, True))
            .add("ma", spark_types.MapType(spark_types.StringType(), inner, True))
        )
        wanted = to_arrow(asked)
        out = conform(batch, wanted, "t")
        out.validate(full=True)
        assert out.schema.equals(wanted)
        for before, after in zip(batch.columns, out.columns, strict=True):
            assert lowered(before.to_pylist()) == lowered(after.to_pylist())


def lowered(value: object) -> object:
    if isinstance(value, dict):
        return {str(k).lower(): lowered(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [lowered(v) for v in value]
    return value
