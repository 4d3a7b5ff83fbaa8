"""Mistakes of newcomers get an answer that says what to do."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest
from pyspark.errors import PySparkException

from delta_ds import DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTable, DeltaTableBuilder
from delta_ds.exceptions import InvalidArgumentError
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.engines.arguments import NotExecuted


def handle() -> Handle:
    nothing: Any = None
    return Handle(spark=nothing, log=nothing, where="/data/sales", options={})


def merge() -> DeltaMergeBuilder:
    nothing: Any = None
    return DeltaMergeBuilder(
        handle(), nothing, "t.id = s.id", _unfinished=NotExecuted("the MERGE into /data/sales")
    )


def builder() -> DeltaTableBuilder[DeltaTable]:
    nothing: Any = None
    return DeltaTableBuilder(nothing, "create", DeltaTable)


@pytest.mark.filterwarnings("ignore:.*was not executed")
@pytest.mark.parametrize(
    ("made", "name", "said"),
    [
        (lambda: DeltaTable(handle()), "show", "has no attribute 'show': its rows are the DataFrame toDF()"),
        (lambda: DeltaTable(handle()), "where", "its rows are the DataFrame toDF()"),
        (
            lambda: DeltaTable(handle()),
            "upsert",
            "that is merge(source, condition), its clauses, and execute()",
        ),
        (lambda: DeltaTable(handle()), "write", 'rows are written by df.write.format("pydelta")'),
        (lambda: DeltaTable(handle()), "optimise", "has no attribute 'optimise'; did you mean 'optimize'?"),
        (lambda: DeltaTable(handle()), "xyz", "has no attribute 'xyz'"),
        (merge, "show", "first call execute(), whose answer is a DataFrame"),
        (merge, "whenMatchedUpdateAl", "did you mean 'whenMatchedUpdateAll'?"),
        (lambda: DeltaOptimizeBuilder(handle()), "execute", "did you mean 'executeFull'?"),
        (
            lambda: DeltaOptimizeBuilder(handle()),
            "show",
            "first call one of execute...(), whose answer is a DataFrame",
        ),
        (builder, "toDF", "first call execute(), which makes the table"),
        (builder, "partitionBy", "did you mean 'partitionedBy'?"),
    ],
)
def test_an_attribute_that_is_not_there_is_answered_with_what_is_meant(
    made: Any, name: str, said: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(made(), name)
    assert str(caught.value).endswith(said) or said in str(caught.value)
    assert not hasattr(made(), "_no_such_name")


def test_a_table_is_not_made_of_a_path() -> None:
    with pytest.raises(InvalidArgumentError, match=r"DeltaTable.forPath\(spark, path\)") as caught:
        DeltaTable("/data/sales")  # type: ignore[arg-type]
    assert isinstance(caught.value, PySparkException)


def test_a_call_that_lacks_an_argument_is_answered_with_how_it_is_called() -> None:
    with pytest.raises(
        TypeError, match="'path': it is DeltaTable.forPath.sparkSession, path, hadoopConf=None.$"
    ):
        DeltaTable.forPath("/data/sales")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match=r"'conditon': it is DeltaTable.delete\(condition=None\)$"):
        DeltaTable(handle()).delete(conditon="id = 1")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'new': it is DeltaTable.renameColumn\(old, new\)$"):
        DeltaTable(handle()).renameColumn("a")  # type: ignore[call-arg]


def test_a_value_of_another_type_is_named_and_its_place_too() -> None:
    nothing: Any = None
    said = r"Values of dict in 'set' must contain only .* as values, found 1 of type '<class 'int'>' for 'amount'$"
    with pytest.raises(InvalidArgumentError, match=said):
        DeltaTable(handle()).update("id = 1", {"amount": 1})  # type: ignore[dict-item]
    with pytest.raises(InvalidArgumentError, match=r"cannot be None; it is one for 'set': set=...$"):
        DeltaTable(handle()).update({"amount": "1"})  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError,
        match="sparkSession needs to be SparkSession but got '<class 'str'>': 'spark' in forPath",
    ):
        DeltaTable.forPath("spark", nothing)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: merge().whenMatchedUpdateAll(), "the MERGE into /data/sales was not executed"),
        (lambda: DeltaOptimizeBuilder(handle()), "the OPTIMIZE of /data/sales was not executed"),
        (lambda: builder().location("/data/new"), "the table that a builder describes was not executed"),
    ],
)
def test_a_builder_that_is_left_without_execute_warns_where_it_was_left(made: Any, said: str) -> None:
    kept = made()
    assert "nothing happens before execute" in repr(kept)
    with pytest.warns(UserWarning, match=said) as caught:
        del kept
    assert [warning.filename for warning in caught] == [__file__]


def test_a_builder_that_was_executed_or_ended_in_an_error_does_not_warn() -> None:
    unfinished = NotExecuted("the MERGE into /data/sales")
    unfinished.done()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del unfinished
        try:
            merge().whenMatchedUpdate("s.id > 1")
        except ValueError as error:
            assert "'set'" in str(error)
            error.__traceback__ = None
            del error
        gc.collect()
    assert [str(each.message) for each in caught if "not executed" in str(each.message)] == []
