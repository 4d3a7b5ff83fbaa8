"""`DeltaTableBuilder`: from calls to columns, and to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from delta_ds.api.delta_log import DeltaLog
from delta_ds.api.snapshot import Snapshot
from delta_ds.exceptions import DeltaError, SchemaError, UnsupportedFeatureError
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    ArrayType,
    DecimalType,
    StructType,
)
from delta_ds.kernel.transaction.alter import create
from delta_ds.spark.api.builder import DeltaTableBuilder, IdentityGenerator
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.base.schema import spark_type, to_kernel

NO_SPARK: Any = None  # types that are objects need no session


def builder_of(spark: Any) -> DeltaTableBuilder[DeltaTable]:
    return DeltaTableBuilder(spark, create.CREATE, DeltaTable)


def built(path: Path, builder: DeltaTableBuilder[DeltaTable]) -> Snapshot:
    builder.location(str(path)).execute()
    return DeltaLog(path).snapshot()


def test_columns_keep_their_order_nullability_and_comments(tmp_path: Path) -> None:
    schema = T.StructType([T.StructField("b", T.StringType(), False, {"comment": "about b", "mine": 1})])
    builder = builder_of(NO_SPARK).addColumn("a", T.LongType(), False, comment="about a")
    found = built(tmp_path / "t", builder.addColumns(schema).addColumn("c", T.DecimalType(9, 2))).schema
    assert [(f.name, f.type, f.nullable, dict(f.metadata)) for f in found] == [
        ("a", LONG, False, {"comment": "about a"}),
        ("b", STRING, False, {"comment": "about b", "mine": 1}),
        ("c", DecimalType(9, 2), True, {}),
    ]


def test_layout_properties_and_comment_reach_the_table(tmp_path: Path) -> None:
    builder = builder_of(NO_SPARK).addColumn("a", T.LongType()).addColumn("b", T.LongType())
    snapshot = built(tmp_path / "p", builder.partitionedBy(["b"]).property("x.y", "z").comment("about it"))
    assert (snapshot.partition_columns, snapshot.properties) == (["b"], {"x.y": "z"})
    assert snapshot.metadata.description == "about it"
    builder = builder_of(NO_SPARK).addColumn("a", T.LongType()).clusterBy("a")
    assert built(tmp_path / "c", builder).detail()["clusteringColumns"] == ["a"]


def test_definitions_are_recorded_in_the_fields(tmp_path: Path) -> None:
    builder = (
        builder_of(NO_SPARK)
        .addColumn("a", T.LongType(), generatedAlwaysAs=IdentityGenerator(5, 2))
        .addColumn("b", T.LongType(), generatedByDefaultAs=IdentityGenerator())
        .addColumn("c", T.LongType(), generatedAlwaysAs="d + 1")
        .addColumn("d", T.LongType(), default="7", comment="about d")
        .property("delta.feature.allowColumnDefaults", "supported")
    )
    assert [dict(f.metadata) for f in built(tmp_path / "t", builder).schema] == [
        {"delta.identity.start": 5, "delta.identity.step": 2, "delta.identity.allowExplicitInsert": False},
        {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True},
        {"delta.generationExpression": "d + 1"},
        {"comment": "about d", "CURRENT_DEFAULT": "7"},
    ]


def test_lengths_of_strings_are_remembered() -> None:
    array = T.ArrayType(T.VarcharType(2))
    schema = to_kernel([T.StructField("a", T.CharType(3)), T.StructField("b", array)])
    assert [f.type for f in schema] == [STRING, ArrayType(STRING)]
    assert [f.metadata["__CHAR_VARCHAR_TYPE_STRING"] for f in schema] == ["char(3)", "array<varchar(2)>"]


@pytest.mark.parametrize(
    "data_type",
    [
        T.StringType("UTF8_LCASE"),
        T.ArrayType(T.StringType("UNICODE")),
        T.StructType([T.StructField("x", T.StringType("UTF8_LCASE"))]),
    ],
)
def test_a_collation_is_refused_by_the_name_of_its_column(data_type: T.DataType) -> None:
    with pytest.raises(UnsupportedFeatureError, match="collation"):
        to_kernel([T.StructField("fine", T.StringType()), T.StructField("a", data_type)])


def test_a_type_that_tables_cannot_have_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="column a "):
        to_kernel([T.StructField("a", T.DayTimeIntervalType())])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"colName": 1, "dataType": T.LongType()}, TypeError),
        ({"colName": "a", "dataType": 1}, TypeError),
        ({"colName": "a", "dataType": T.LongType(), "nullable": "no"}, TypeError),
        ({"colName": "a", "dataType": T.LongType(), "comment": 1}, TypeError),
        ({"colName": "a", "dataType": T.LongType(), "generatedByDefaultAs": "id"}, TypeError),
        ({"colName": "a", "dataType": T.LongType(), "generatedAlwaysAs": IdentityGenerator(step=0)}, ValueError),
        ({"colName": "a", "dataType": T.LongType(), "generatedAlwaysAs": IdentityGenerator(1 << 63)}, ValueError),
        (
            {
                "colName": "a", "dataType": T.LongType(), "generatedAlwaysAs": "b",
                "generatedByDefaultAs": IdentityGenerator(),
            },
            ValueError,
        ),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_kind_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        builder_of(NO_SPARK).addColumn(**arguments)


def test_a_table_needs_a_place() -> None:
    builder = builder_of(NO_SPARK).addColumn("a", T.LongType())
    with pytest.raises(DeltaError, match=r"\.location"):
        builder.execute()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int", T.IntegerType()),
        ("BIGINT", T.LongType()),
        ("decimal(10, 2)", T.DecimalType(10, 2)),
        ("varchar(3)", T.VarcharType(3)),
        ("array<struct<a: int not null, `b c`: string>>", None),
        ("map<string, array<double>>", T.MapType(T.StringType(), T.ArrayType(T.DoubleType()))),
        ("struct<a:int,b:string>", None),
        ("variant", T.VariantType()),
        ("timestamp_ntz", T.TimestampNTZType()),
    ],
)
def test_ddl_is_read_as_spark_reads_it(spark: SparkSession, text: str, expected: T.DataType | None) -> None:
    found = spark_type(text)
    assert found == (expected if expected is not None else T.DataType.fromDDL(text))


@pytest.mark.spark
@pytest.mark.parametrize("text", ["no such type", "", "a int, b int", "int, b: string", "decimal(50,2)"])
def test_text_that_is_no_type_is_refused(spark: SparkSession, text: str) -> None:
    with pytest.raises(SchemaError, match="data type"):
        spark_type(text)


@pytest.mark.spark
def test_a_table_of_ddl_columns_is_read_by_the_source(spark: SparkSession, tmp_path: Path) -> None:
    builder = builder_of(spark).addColumn("a", "bigint", nullable=False)
    table = builder.addColumn("v", "variant").addColumn("i", "int").location(str(tmp_path / "t")).execute()
    schema: StructType = DeltaLog(tmp_path / "t").snapshot().schema
    assert [f.type for f in schema] == [LONG, VARIANT, INTEGER]
    assert [(f.name, f.dataType.simpleString()) for f in table.toDF().schema] == [
        ("a", "bigint"), ("v", "variant"), ("i", "int"),
    ]  # fmt: skip
    assert table.toDF().count() == 0
