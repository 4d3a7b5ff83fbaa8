"""Files that stay while another table takes the place of theirs: what is replaced with `replaceWhere`.

Such files keep the columns and partition values that they were written with, so the new table has to read them alike.
Source: delta-spark, `CreateDeltaTableCommand` with `replaceWhere`; its files hold the partition columns as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.conditions.write import REPLACE_WHERE_OF_OTHER_LAYOUT
from delta_ds.kernel.properties import CONSTRAINT_PREFIX, ENABLE_ROW_TRACKING
from delta_ds.kernel.schema.column_mapping import physical_name
from delta_ds.kernel.table_state import TableState

if TYPE_CHECKING:
    from delta_ds.kernel.snapshot import Snapshot

_FILES_AT_ONCE = 16


def check_kept_files(snapshot: Snapshot, state: TableState) -> None:
    """Refuse a table that would read the files of the one that it takes the place of otherwise than that one.

    Parameters
    ----------
    snapshot
        The table that is there, some of whose files stay.
    state
        The table that takes its place.

    Raises
    ------
    InvalidOptionError
        A column would be lost, of another type or elsewhere in the files, or partition values would be; rows that stay
        would have no row ids, or would not be checked.
    DataFileError
        A file that is looked into is missing or damaged.
    """
    reason = next(_differences(snapshot, state), None)
    if reason is not None:
        raise REPLACE_WHERE_OF_OTHER_LAYOUT(table=state.table, version=snapshot.version, reason=reason)


def _differences(snapshot: Snapshot, state: TableState) -> Iterator[str]:
    before = snapshot.table_state
    if before.mapping_mode != state.mapping_mode:
        yield f"its column mapping mode is {before.mapping_mode}, and would be {state.mapping_mode}"
    for field in before.schema:
        new = state.schema.find(field.name)
        if new is None:
            yield f"the new table has no column {field.name}"
        elif new.type != field.type or physical_name(new, state.mapping_mode) != physical_name(
            field, before.mapping_mode
        ):
            yield f"column {field.name} is {field.type}, and would be {new.type}, or another column of the files"
        elif field.nullable and not new.nullable:
            yield f"column {field.name} may hold nulls, and would be NOT NULL"
    if ENABLE_ROW_TRACKING.of(state.properties) and not ENABLE_ROW_TRACKING.of(before.properties):
        yield "its rows have no row ids, and the new table would track rows"
    checks = _constraints(before.properties)
    for name, text in _constraints(state.properties).items():
        if checks.get(name) != text:
            yield f"its rows were not checked against the constraint {name}, ({text})"
    old, new_names = (
        {n.lower() for n in before.partition_columns},
        {n.lower() for n in state.partition_columns},
    )
    if not new_names <= old:
        yield f"it would be partitioned by {', '.join(sorted(new_names - old))}, of which its files have no value"
    moved = [f for f in before.schema if f.name.lower() in old - new_names]
    if moved:
        names = {physical_name(field, before.mapping_mode) for field in moved}
        for path in _files_without(snapshot, names):
            columns = ", ".join(field.name for field in moved)
            yield f"it would not be partitioned by {columns} any more, which {path} does not hold"


def _constraints(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key.removeprefix(CONSTRAINT_PREFIX): text
        for key, text in properties.items()
        if key.startswith(CONSTRAINT_PREFIX)
    }


def _files_without(snapshot: Snapshot, names: Set[str]) -> Iterator[str]:
    """The paths of live files that lack columns."""
    paths = snapshot.live_files().table["path"].to_pylist()
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for path, found in zip(paths, pool.map(lambda p: _columns(snapshot, p), paths), strict=True):
            if not names <= found:
                yield path


def _columns(snapshot: Snapshot, path: str) -> set[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = f"data file {path} of table {snapshot.storage.url} at version {snapshot.version}"
    try:
        with closing(snapshot.storage.open(snapshot.storage.resolve(path))) as source:
            return set(pq.read_schema(source).names)
    except FileNotFoundError as error:
        raise FAILED_READ_FILE_FILE_NOT_EXIST({"path": path}, place=place) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FAILED_READ_FILE_NO_HINT({"path": path}, place=place, reason=error) from error
