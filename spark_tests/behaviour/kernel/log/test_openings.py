"""How often the files of a checkpoint are opened, that they are closed, and what stays known of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.checkpoint_files import UnreadableCheckpointError
from delta_ds.kernel.log.replay import load_state
from delta_ds.kernel.log.segment import find_segment
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.testing import TableBuilder

KINDS = ["v1", "multi-part", "v2-parquet", "v2-json"]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The files that were opened, by name, with their streams."""
    found: list[tuple[str, Any]] = []
    open_known = LocalStorage.open_known

    def noted(self: LocalStorage, path: str) -> Any:
        known = open_known(self, path)
        found.append((Path(path).name, known.stream))
        return known

    monkeypatch.setattr(LocalStorage, "open_known", noted)
    return found


def _with_checkpoint(folder: Path, kind: Any) -> list[Path]:
    """A table of twelve files, the last of them after a checkpoint, whose files are returned."""
    table = TableBuilder(folder)
    table.create(pa.schema([("id", pa.int64())]))
    table.commit(*(table.write_file(pa.table({"id": [n]}), path=f"f{n}.parquet") for n in range(11)))
    files = table.checkpoint(kind, parts=3)
    table.append(pa.table({"id": [11]}))
    return files


@pytest.mark.parametrize("kind", KINDS)
def test_full_load_opens_sidecars_once_and_what_names_them_once_more_at_most(
    tmp_path: Path, opened: list[tuple[str, Any]], kind: str
) -> None:
    files = _with_checkpoint(tmp_path, kind)
    storage = DeltaLog(tmp_path).storage
    segment = find_segment(storage)
    opened.clear()
    assert load_state(storage, segment).files.num_rows == 12
    times = Counter(name for name, _ in opened)
    sidecars = {file.name: 1 for file in files if file.parent.name == "_sidecars"}
    assert {name: count for name, count in times.items() if name in sidecars} == sidecars
    # Classic ones hold both what is said of the table and its files; a manifest in Parquet is looked through for files.
    assert all(count <= 2 for count in times.values())
    assert all(stream.closed for _, stream in opened)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stays_open_where_a_file_cannot_be_read(
    tmp_path: Path, opened: list[tuple[str, Any]], kind: str
) -> None:
    *_, last = _with_checkpoint(tmp_path, kind)
    last.write_bytes(last.read_bytes()[:-1])
    storage = DeltaLog(tmp_path).storage
    with pytest.raises(UnreadableCheckpointError):
        load_state(storage, find_segment(storage))
    assert all(stream.closed for _, stream in opened)


@pytest.mark.parametrize("kind", ["v1", "v2-parquet"])
def test_selection_is_right_after_the_checkpoint_was_written_again(tmp_path: Path, kind: str) -> None:
    files = _with_checkpoint(tmp_path, kind)
    snapshot = DeltaLog(tmp_path).open_snapshot()

    def names(n: int) -> list[str]:
        return [str(name) for name in Scan(snapshot, f"id = {n}").files()["path"].to_pylist()]

    assert [names(n) for n in (0, 10)] == [["f0.parquet"], ["f10.parquet"]]
    for file in files:
        if file.suffix == ".parquet":
            rows = pq.read_table(file)
            pq.write_table(rows.take(list(reversed(range(rows.num_rows)))), file)
    assert [names(n) for n in (0, 10)] == [["f0.parquet"], ["f10.parquet"]]


def test_second_selection_reads_no_more_of_the_checkpoint_than_its_parts(
    tmp_path: Path, opened: list[tuple[str, Any]]
) -> None:
    _with_checkpoint(tmp_path, "v1")
    snapshot = DeltaLog(tmp_path).open_snapshot()
    assert len(Scan(snapshot, "id = 3").slices()) == 1
    opened.clear()
    assert len(Scan(snapshot, "id = 4").slices()) == 1
    assert len(opened) == 1
