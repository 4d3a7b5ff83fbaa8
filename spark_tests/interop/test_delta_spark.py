"""What the kernel writes, delta-spark reads: every version, by its own log and its own reader."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from delta_ds.kernel.schema.types import schema_to_json
from spark_tests.interop.catalogue import CASES
from spark_tests.interop.delta_spark import DeltaSpark, comparable
from spark_tests.interop.written import Written
from spark_tests.yardsticks.compare import difference, without_internal_metadata

pytestmark = pytest.mark.interop

Tables = Callable[[str], Written]


@pytest.mark.parametrize("name", CASES)
def test_every_version_has_the_rows_that_were_written(
    name: str, written: Tables, delta_spark: DeltaSpark
) -> None:
    table = written(name)
    for version in table.versions:
        snapshot = table.log.snapshot(version)
        kernel = comparable(snapshot.scan().to_arrow(), snapshot.schema)
        wanted = comparable(table.expected(version), snapshot.schema)
        assert difference(kernel, wanted) is None, f"version {version} by the kernel"
        df = delta_spark.load(table.path, version)
        assert difference(delta_spark.rows(df, snapshot.schema), wanted) is None, f"version {version}"
        ours = without_internal_metadata(json.loads(schema_to_json(snapshot.schema)))
        assert delta_spark.schema(df) == ours, f"schema of version {version}"
