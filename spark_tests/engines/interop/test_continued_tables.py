"""Tables that the kernel and delta-spark write in turn: each goes on where the other has stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from delta_ds import DeltaLog
from spark_tests.engines.interop.catalogue import CASES
from spark_tests.engines.interop.continued_tables import assert_same, write_again
from spark_tests.engines.interop.delta_spark import DeltaSpark
from spark_tests.engines.interop.table_factory import Work, Workshop
from spark_tests.engines.interop.tables_of_delta_spark import COLUMNS, ROWS, TABLES

pytestmark = pytest.mark.interop

Outcome = Callable[[Work, str], None]


@pytest.mark.parametrize("name", CASES)
def test_delta_spark_goes_on_and_then_the_kernel(name: str, outcome: Outcome) -> None:
    outcome(delta_spark_first, name)


def delta_spark_first(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    case = CASES[name]
    path = workshop.folder() / name
    shutil.copytree(workshop.written(name).path, path)
    log = DeltaLog(path)
    before = log.snapshot().version
    for statement, error in case.refused.items():
        with pytest.raises(Exception, match=error):
            delta_spark.run(statement, path)
    assert log.snapshot().version == before
    for statement in case.steps:
        # A change feed needs the files that VACUUM takes away.
        if not (statement.startswith("VACUUM") and _has_feed(log)):
            delta_spark.run(statement, path)
    if case.checkpointed:
        delta_spark.checkpoint(path)
    assert log.snapshot().version > before
    assert_same(log, delta_spark, "after delta-spark")
    write_again(log, case.numbered)
    assert delta_spark.checksum_difference(path) is None
    assert_same(log, delta_spark, "after the kernel again")


def _has_feed(log: DeltaLog) -> bool:
    return log.snapshot().properties.get("delta.enableChangeDataFeed") == "true"


@pytest.mark.parametrize("name", TABLES)
def test_kernel_goes_on_with_a_table_of_delta_spark(name: str, outcome: Outcome) -> None:
    outcome(kernel_first, name)


def kernel_first(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    path = workshop.folder() / name
    columns = COLUMNS.replace("text", "words") if name == "mapped_by_id" else COLUMNS
    for statement in (*TABLES[name], *ROWS):
        delta_spark.run(statement.replace("{columns}", columns), path)
    log = DeltaLog(path)
    assert_same(log, delta_spark, "as delta-spark wrote it")
    assert log.snapshot().scan().to_arrow().num_rows == 3
    write_again(log)
    assert delta_spark.checksum_difference(path) is None
    delta_spark.run(ROWS[0].replace("{columns}", columns), path)
    assert_same(log, delta_spark, "after delta-spark again")
