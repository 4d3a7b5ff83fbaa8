"""`replaceTable`: an overwrite that brings a table of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.options.write import parse_write_options
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.write.arrow import write_arrow

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "p": pa.array(["a", "b"])})


def write(path: Path, rows: pa.Table, mode: str = "overwrite", **options: Any) -> Snapshot:
    write_arrow(DeltaLog(path).start_transaction(create=True), rows, mode, options)
    return DeltaLog(path).open_snapshot()


def test_new_table_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert write(tmp_path / "t", ROWS, replaceTable="true").version == 0


def test_schema_layout_and_properties_are_those_of_the_write(tmp_path: Path) -> None:
    before = write(tmp_path / "t", ROWS, partitionBy="p", **{"delta.logRetentionDuration": "interval 9 days"})
    other = pa.table({"x": pa.array([3.5])})
    after = write(tmp_path / "t", other, replaceTable="true", **{"delta.dataSkippingNumIndexedCols": "7"})
    assert after.version == 1
    assert after.metadata.id != before.metadata.id, "streams tell the two tables apart"
    assert after.properties == {"delta.dataSkippingNumIndexedCols": "7"}
    assert ([f.name for f in after.schema], list(after.partition_columns)) == (["x"], [])
    assert Scan(after).to_arrow().to_pylist() == [{"x": 3.5}]
    assert DeltaLog(tmp_path / "t").snapshot(0).scan().to_arrow().num_rows == 2


def test_clustering_comes_and_goes(tmp_path: Path) -> None:
    write(tmp_path / "t", ROWS)
    assert write(tmp_path / "t", ROWS, replaceTable="true", clusterBy="id").clustering_columns == [["id"]]
    assert write(tmp_path / "t", ROWS, replaceTable="true", clusterBy="p").clustering_columns == [["p"]]
    after = write(tmp_path / "t", ROWS, replaceTable="true")
    assert (after.clustering_columns, after.protocol.supports(CLUSTERING)) == ([], True)


def test_columns_that_are_mapped_get_ids_of_their_own(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    before = write(tmp_path / "t", ROWS, **mapped)
    after = write(tmp_path / "t", ROWS, replaceTable="true", **mapped)
    ids = [[f.metadata["delta.columnMapping.id"] for f in s.schema] for s in (before, after)]
    assert not set(ids[0]) & set(ids[1])
    assert Scan(after).to_arrow().num_rows == 2


def test_only_an_overwrite_replaces_a_table() -> None:
    with pytest.raises(InvalidOptionError, match="replaceTable"):
        parse_write_options({"path": "/p", "replaceTable": "true"}, overwrite=False)
