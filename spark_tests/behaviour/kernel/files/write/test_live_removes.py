"""Removing live files by row number: the same actions as one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from spark_tests.behaviour.kernel.transaction.tables import add, bodies, features, make_table, read_commit
from spark_tests.full_form import examples

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="%:/"), min_size=1, max_size=8)


def _removes(path: Path, log: DeltaLog, rows: pa.Array | None, **how: Any) -> list[dict[str, Any]]:
    version = (
        log.start_transaction().remove_live(rows, timestamp_ms=77, **how).commit("DELETE", post_commit=False)
    )
    return bodies(read_commit(path, version), "remove")


def test_all_files_are_removed_with_everything_known_of_them(tmp_path: Path) -> None:
    files = [
        add("a", 1, deletionVector=VECTOR, baseRowId=0, defaultRowCommitVersion=0),
        add("b", None, deletionVector={k: v for k, v in VECTOR.items() if k != "offset"}),
        add("c", 2),
    ]
    log = make_table(tmp_path, files, protocol=features(reader=["deletionVectors"]))
    found = {body["path"]: body for body in _removes(tmp_path, log, None)}
    for file in files:
        expected = {key: value for key, value in file.items() if key != "modificationTime"}
        expected |= {"deletionTimestamp": 77, "extendedFileMetadata": True}
        assert found[file["path"]] == expected
    assert log.open_snapshot().live_files().num_rows == 0


def test_rows_pick_the_files_and_rearranging_changes_no_data(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add(name, 1) for name in "abc"])
    found = _removes(tmp_path, log, pa.array([2, 0]), data_change=False)
    assert [(body["path"], body["dataChange"]) for body in found] == [("c", False), ("a", False)]


def test_removing_nothing_is_no_removal(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("a", 1)])
    log.start_transaction().remove_live(pa.array([], pa.int64())).add(add("b", 1)).commit("WRITE")
    (first, *_) = read_commit(tmp_path, 1)
    assert first["commitInfo"]["isBlindAppend"] is True


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.tuples(_TEXT, st.one_of(st.none(), _TEXT)), min_size=1, max_size=6, unique_by=lambda t: t[0])
)
def test_any_path_and_partition_value_comes_out_as_it_went_in(
    tmp_path_factory: Any, files: list[tuple[str, str | None]]
) -> None:
    path = tmp_path_factory.mktemp("table")
    log = make_table(path, [{**add(name), "partitionValues": {"p": value}} for name, value in files])
    found = _removes(path, log, None)
    assert sorted((b["path"], b["partitionValues"]["p"]) for b in found) == sorted(files, key=lambda t: t[0])
