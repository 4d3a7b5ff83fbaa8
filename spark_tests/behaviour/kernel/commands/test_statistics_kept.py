"""Commands that commit files once more keep what the statistics of these files say, wherever it stood before."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.dml.commit import DmlCommand, commit_dml
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.schema.types import DataType, StructType
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.format.values.statistics_json import json_members
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.testing import TableBuilder

WIDE = Decimal("12345678901234567890.123456789012345678")
WHOLE = Decimal(10**38 - 1)
_MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)
ROWS = pa.table(
    {
        "id": [1, 2, (1 << 63) - 1],
        "wide": pa.array([WIDE, WIDE.copy_negate(), Decimal("0.000000000000000001")], pa.decimal128(38, 18)),
        "whole": pa.array([WHOLE, WHOLE.copy_negate(), Decimal(1)], pa.decimal128(38, 0)),
        "cents": pa.array([Decimal("12345678901234567.89")] * 3, pa.decimal128(30, 2)),
        "f": pa.array([0.1, -3.4e38, float("nan")], pa.float32()),
        "d": pa.array([5e-324, 1.7976931348623157e308, -0.0]),
        "s": ["a" * 50, "\U0010ffff" * 50, '"\\\n\u2028'],
        "t": pa.array([_MOMENT] * 3, pa.timestamp("us", "UTC")),
        "n": pa.array([_MOMENT] * 3, pa.timestamp("us")),
        "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        "none": pa.array([None] * 3, pa.int64()),
        "st": [{"inner": 1, "b": True, "x": b"\xff"}] * 3,
    }
)


def _delete(log: DeltaLog) -> DeltaLog:
    snapshot = log.open_snapshot()
    path = Scan(snapshot).files()["path"][0].as_py()
    commit_dml(snapshot, DmlCommand("DELETE", deleted={path: np.array([0], np.uint64)}))
    return log


def _track_rows(log: DeltaLog) -> DeltaLog:
    set_properties(log, {"delta.enableRowTracking": "true"})
    return log


def _restore(log: DeltaLog) -> DeltaLog:
    version = log.snapshot().version
    log.write(ROWS, mode="overwrite")
    restore(log, version=version)
    return log


def _clone(log: DeltaLog) -> DeltaLog:
    target = DeltaLog(f"{log.storage.url}-clone")
    shallow_clone(log, target)
    return target


FEATURES = ["deletionVectors", "timestampNtz"]
COMMANDS = pytest.mark.parametrize("command", [_delete, _track_rows, _restore, _clone])


@COMMANDS
def test_statistics_that_stood_in_columns_say_the_same_as_text(
    command: Callable[[DeltaLog], DeltaLog], tmp_path: Path
) -> None:
    log = DeltaLog(tmp_path / "t")
    typed_only = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    log.write(ROWS, options={"delta.enableDeletionVectors": "true", **typed_only})
    log.checkpoint()
    before = _known(log)
    assert f"Decimal('{WIDE}')" in before and log.snapshot().files()["stats"].null_count == 1

    (text,) = _committed_again(command(log))

    assert json.loads(text)["numRecords"] == 3
    assert _known(log if command is not _clone else DeltaLog(f"{log.storage.url}-clone")) == before


@COMMANDS
def test_statistics_that_stood_as_text_are_kept_to_the_letter(
    command: Callable[[DeltaLog], DeltaLog], tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path / "t")
    table.create(ROWS.schema, reader_features=FEATURES, writer_features=FEATURES)
    bounds = (
        '"minValues": {"wide": -1.2345678901234567890123456789e19},\n "maxValues":{"wide":1e+20,"d":1.00}'
    )
    text = f'{{ {bounds}, "numRecords":3, "of its writer": [{{"a,}}": NaN}}, null], "nullCount" : {{}}}}'
    add = table.write_file(ROWS)
    add["add"]["stats"] = text
    table.commit(add)
    log = DeltaLog(table.path)
    log.checkpoint()

    (found,) = _committed_again(command(log))

    if command is _delete:
        assert json_members(found) == {**json_members(text), "tightBounds": "false"}
    else:
        assert found == text


@pytest.mark.parametrize("text", [None, "{}", "[1]", "{", '{"numRecords":"x","tightBounds":true}'])
def test_files_with_a_vector_have_a_count_of_records_whatever_was_known(
    text: str | None, tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path)
    table.create(ROWS.schema, reader_features=FEATURES, writer_features=FEATURES)
    add = table.write_file(ROWS, stats=False)
    if text is not None:
        add["add"]["stats"] = text
    table.commit(add)

    (found,) = _committed_again(_delete(DeltaLog(table.path)))

    assert json.loads(found) == {"numRecords": 3, "tightBounds": False}


def test_columns_that_lost_their_index_keep_their_statistics(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    typed_only = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    log.write(ROWS, options={"delta.enableDeletionVectors": "true", **typed_only})
    log.checkpoint()
    before = _known(log)
    set_properties(log, {"delta.dataSkippingNumIndexedCols": "0"})
    _committed_again(_delete(log))
    assert _known(log) == before


def _known(log: DeltaLog) -> str:
    """All that skipping knows of the files."""
    snapshot = log.open_snapshot()
    leaves = list(_leaves(snapshot.schema))
    files = snapshot.live_files()
    found = load_statistics(files, row_numbers(files.num_rows), leaves)
    sides = [{path: array.to_pylist() for path, array in side.items()} for side in (found.min, found.max)]
    nulls = {path: array.to_pylist() for path, array in found.null_count.items()}
    return repr((found.num_records.to_pylist(), *sides, nulls))


def _leaves(schema: StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], DataType]]:
    for field in schema:
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, (*above, field.name))
        else:
            yield (*above, field.name), field.type


def _committed_again(log: DeltaLog) -> list[str]:
    """The statistics of the newest commit that adds files."""
    for path in sorted(Path(log.storage.url, "_delta_log").glob("*.json"), reverse=True):
        actions = [json.loads(line) for line in path.read_bytes().splitlines()]
        if found := [action["add"]["stats"] for action in actions if "add" in action]:
            return found
    raise AssertionError("no commit adds files")
