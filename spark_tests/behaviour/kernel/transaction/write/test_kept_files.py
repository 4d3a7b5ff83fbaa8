"""A table that takes the place of another one while some of its files stay: what stays is read as before, or nothing is
written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DataFileError, InvalidOptionError

TRACKS = {"delta.enableRowTracking": "true"}
REPLACED = {"replaceTable": "true", "replaceWhere": "p = 'y'"}


def rows(ids: list[int], p: str) -> pa.Table:
    return pa.table({"a": ids, "p": [p] * len(ids)})


def tracked(log: DeltaLog) -> dict[int, tuple[int, int]]:
    scan = log.snapshot().scan(metadata_columns=("row_id", "row_commit_version"))
    found = {row["a"]: row["_metadata"] for row in scan.to_arrow().to_pylist()}
    return {a: (of["row_id"], of["row_commit_version"]) for a, of in found.items()}


def test_row_ids_of_rows_that_stay_stay(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(rows([1, 2, 3], "k"), options=TRACKS)
    log.write(rows([2], "k"), "overwrite", options={"replaceWhere": "a = 2"})  # ids go into files
    log.write(rows([5], "y"))
    before = tracked(log)
    log.write(rows([9], "y"), "overwrite", options={**REPLACED, **TRACKS})
    after = tracked(log)
    assert {a: after[a] for a in (1, 2, 3)} == {a: before[a] for a in (1, 2, 3)}
    assert len({id_ for id_, _ in after.values()}) == 4


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (TRACKS, "no row ids"),
        ({"delta.constraints.c": "a > 4"}, "not checked against the constraint c"),
        ({"delta.columnMapping.mode": "name"}, "column mapping mode"),
    ],
)
def test_what_rows_that_stay_do_not_have_is_refused(
    tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    log = DeltaLog(tmp_path)
    log.write(rows([1, 2, 3], "k"))
    with pytest.raises(InvalidOptionError, match=reason) as error:
        log.write(rows([9], "y"), "overwrite", options={**REPLACED, **options})
    assert error.value.condition == "DELTA_REPLACE_WHERE_OF_OTHER_LAYOUT"
    assert log.snapshot().version == 0


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_file_that_cannot_be_looked_into_is_named(tmp_path: Path, damage: str) -> None:
    log = DeltaLog(tmp_path)
    log.write(rows([1, 2, 3], "k"), options={"partitionBy": "p"})
    (path,) = log.snapshot().files()["path"].to_pylist()
    if damage == "missing":
        (tmp_path / path).unlink()
    else:
        (tmp_path / path).write_bytes(b"no Parquet at all")
    with pytest.raises(DataFileError, match=Path(path).name):
        log.write(rows([9], "y"), "overwrite", options=REPLACED)
    assert log.snapshot().version == 0
