"""Statements on the catalog, and calls of `spark.catalog`, are answered as by delta-spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_tests.engines.conformance.corpora.catalog.cases import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

RECORD = Path(__file__).parents[4] / "engines/conformance/corpora/catalog/catalog.json"
# Spark lists the clustering columns of a table, and delta-spark does not tell it of them.
CLUSTERING = {
    "('# Clustering Information', '', '')",
    "('# col_name', 'data_type', 'comment')",
    "('b.c', 'int', None)",
}
MORE_HERE = {"DESCRIBE clus": CLUSTERING, "DESCRIBE EXTENDED clus": CLUSTERING}


def test_the_catalog_answers_as_with_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    recorded: list[list[Any]] = json.loads(RECORD.read_text())
    found = json.loads(json.dumps(answers(spark, tmp_path)))
    assert [label for label, _ in found] == [label for label, _ in recorded]
    for (label, answer), (_, expected) in zip(found, recorded, strict=True):
        if label in MORE_HERE:
            assert set(answer["rows"]) - set(expected["rows"]) == MORE_HERE[label]
            answer["rows"] = [row for row in answer["rows"] if row in expected["rows"]]
            # The column itself is listed twice.
            answer["rows"].remove("('a', 'int', None)")
    differ = [(*one, other) for one, (_, other) in zip(found, recorded, strict=True) if one[1] != other]
    assert differ == []
