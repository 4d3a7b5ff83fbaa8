"""Symlink manifests are those that delta-spark writes of the same table, and both refuse the same tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.maintain import SYMLINK_FORMAT_MANIFEST, generate
from spark_tests.engines.interop.delta_spark import DeltaSpark

pytestmark = pytest.mark.interop

GENERATE = "GENERATE symlink_format_manifest FOR TABLE {t}"
ROWS = """SELECT 1L AS id, 'plain' AS `a%b:c`, DATE'2024-02-29' AS day UNION ALL SELECT 2, 'a b', NULL
UNION ALL SELECT 3, 'a/b=c%d', DATE'2024-02-29' UNION ALL SELECT 4, 'ü 漢', NULL
UNION ALL SELECT 5, '#?&+:', NULL UNION ALL SELECT 6, NULL, NULL UNION ALL SELECT 7, '', DATE'2024-02-29'"""


def manifests(path: Path) -> dict[str, bytes]:
    """The manifests of a table without the place of the table, by path."""
    folder = path / "_symlink_format_manifest"
    return {
        str(file.relative_to(folder)): file.read_bytes().replace(str(path).encode(), b"<table>")
        for file in folder.rglob("manifest")
    }


def test_manifests_of_partitions_with_odd_names_and_values_are_the_same(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    rows = delta_spark.session.sql(ROWS)
    rows.write.format("delta").partitionBy("a%b:c", "day").save(str(theirs))
    delta_spark.run(GENERATE, theirs)
    shutil.copytree(theirs, ours, ignore=shutil.ignore_patterns("_symlink_format_manifest"))
    generate(DeltaLog(ours), SYMLINK_FORMAT_MANIFEST)
    assert len(manifests(theirs)) >= 6
    assert manifests(ours) == manifests(theirs)


def test_a_partition_that_is_gone_loses_its_manifest_in_both(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    delta_spark.session.sql(ROWS).write.format("delta").partitionBy("day").save(str(theirs))
    delta_spark.run(GENERATE, theirs)
    shutil.copytree(theirs, ours)
    generate(DeltaLog(ours), SYMLINK_FORMAT_MANIFEST)
    delta_spark.run("DELETE FROM {t} WHERE day IS NULL", theirs)
    delta_spark.run(GENERATE, theirs)
    shutil.rmtree(ours / "_delta_log")
    shutil.copytree(theirs / "_delta_log", ours / "_delta_log")
    generate(DeltaLog(ours), SYMLINK_FORMAT_MANIFEST)
    assert list(manifests(theirs)) == ["day=2024-02-29/manifest"]
    assert manifests(ours) == manifests(theirs)


@pytest.mark.parametrize(
    ("statements", "condition"),
    [
        (
            ("CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",),
            "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        ),
        (
            (
                "CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
                "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id FROM RANGE(100)",
                "DELETE FROM {t} WHERE id = 3",
            ),
            "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
        ),
    ],
)
def test_both_refuse_what_a_manifest_cannot_say(
    statements: tuple[str, ...], condition: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    for statement in statements:
        delta_spark.run(statement, path)
    with pytest.raises(Exception, match=condition):
        delta_spark.run(GENERATE, path)
    with pytest.raises(DeltaError, match=condition):
        generate(DeltaLog(path), SYMLINK_FORMAT_MANIFEST)
    assert not manifests(path)
