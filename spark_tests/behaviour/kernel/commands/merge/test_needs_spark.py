"""What MERGE without Spark leaves to Spark: told truly, and before anything is changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.testing import TableBuilder


@pytest.mark.parametrize("inside", ["struct", "array"])
def test_fields_that_an_update_of_all_columns_would_keep(tmp_path: Path, inside: str) -> None:
    log = DeltaLog(tmp_path)
    old, new = (
        ({"a": 1, "b": 2}, {"a": 5, "c": 6}) if inside == "struct" else ([{"a": 1, "b": 2}], [{"a": 5}])
    )
    log.write(pa.table({"id": [1], "s": [old]}))
    source = pa.table({"id": [1, 9], "s": [new, new]})
    merger = log.merge(source, "t.id = u.id", "u", "t", merge_schema=True)
    with pytest.raises(PredicateError) as raised:
        merger.when_matched_update_all().execute()
    assert raised.value.condition == "DELTA_MERGE_NEEDS_SPARK"
    assert "holds a value for s" in str(raised.value) and "without b" in str(raised.value)
    assert log.snapshot().version == 0
    merger = log.merge(source, "t.id = u.id", "u", "t", merge_schema=True)
    assert merger.when_not_matched_insert_all().execute().num_target_rows_inserted == 1


@pytest.mark.parametrize("value", ["s.k", "NULL"])
def test_null_for_an_identity_column_that_another_clause_leaves_to_the_table(
    tmp_path: Path, value: str
) -> None:
    made = {"delta.identity.start": 10, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": True}
    table = TableBuilder(tmp_path)
    schema = StructType((StructField("k", LONG, metadata=made), StructField("id", LONG)))
    table.create(schema, writer_features=["identityColumns"])
    log = DeltaLog(tmp_path)
    before = log.snapshot().version
    source = pa.table({"id": [1, 2], "k": pa.array([None, None], pa.int64())})
    merger = log.merge(source, "false", "s", "t").when_not_matched_insert(
        {"id": "s.id", "k": value}, "s.id = 1"
    )
    merger = merger.when_not_matched_insert({"id": "s.id"})
    with pytest.raises(PredicateError, match="null for an identity column") as raised:
        merger.execute()
    assert raised.value.condition == "DELTA_MERGE_NEEDS_SPARK"
    assert log.snapshot().version == before
    assert not list(tmp_path.rglob("*.parquet"))
