"""VACUUM by an inventory: a list of files, such as an object store's report, in place of a listing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.commands import INVALID_INVENTORY_ROW, INVALID_INVENTORY_SCHEMA
from delta_ds.events.commands import INVENTORY_ROWS_OUTSIDE
from delta_ds.events.storage import LINK_NOT_FOLLOWED
from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.base.nested_arrays import array_of_values
from delta_ds.kernel.commands.vacuum.paths import links_on_the_way
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.listing import listing_schema

Inventory: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[Mapping[str, Any] | Sequence[Any]]

COLUMNS = ("path", "length", "isDir", "modificationTime")
_KINDS = (pa.string(), pa.int64(), pa.bool_(), pa.int64())
_ROWS = 65_536

# As Hadoop and the stores' own tools spell them.
_SPELLINGS = {"s3": ("s3", "s3a", "s3n"), "gs": ("gs", "gcs"), "abfs": ("abfs", "abfss", "wasb", "wasbs")}


def read_inventory(inventory: Inventory, storage: Storage) -> pa.Table:
    """The rows of an inventory that lie below the table's folder, as a listing has them.

    A path that comes twice counts with its newest time.

    Parameters
    ----------
    inventory
        Columns `path` string (full address, not URI-encoded), `length` integer (bytes), `isDir` boolean and
        `modificationTime` integer (ms since 1970; null: not known). Rows are mappings, or sequences in that order.

    Returns
    -------
    pyarrow.Table
        Of `listing_schema`.

    Raises
    ------
    InvalidOptionError
        It has other columns.
    """
    table = _check_columns(
        inventory if isinstance(inventory, pa.Table) else _table(inventory, storage), storage
    )
    paths = table["path"]
    relative = pa.nulls(len(paths), pa.string())
    for root in _roots(storage):
        below = pc.if_else(
            pc.starts_with(paths, root),
            pc.utf8_slice_codeunits(paths, len(root)),
            pa.nulls(1, pa.string())[0],
        )
        relative = pc.coalesce(below, relative)
    relative = pc.utf8_rtrim(relative, "/")
    odd = pc.match_substring_regex(relative, r"^$|//|(^|/)\.\.?(/|$)")
    inside = pc.and_(pc.is_valid(relative), pc.invert(pc.fill_null(odd, FALSE)))
    if (outside := table.num_rows - (pc.sum(inside).as_py() or 0)) > 0:
        INVENTORY_ROWS_OUTSIDE.log(table=storage.url, rows=outside)
    zero = integers([0])[0]
    rows = pa.table(
        {
            "path": relative,
            "size": pc.fill_null(table["length"], zero),
            "modified_ms": pc.fill_null(table["modificationTime"], zero),
            "is_folder": pc.fill_null(table["isDir"], FALSE),
            "unknown": pc.is_null(table["modificationTime"]),
        }
    ).filter(inside)
    whole = rows.group_by("path").aggregate(
        [(name, "max") for name in ("size", "modified_ms", "is_folder", "unknown")]
    )
    times = pc.if_else(whole["unknown_max"], zero, whole["modified_ms_max"])
    found = pa.table(
        [whole["path"], whole["size_max"], times, whole["is_folder_max"]], schema=listing_schema()
    )
    return _not_behind_links(found, storage)


def _not_behind_links(rows: pa.Table, storage: Storage) -> pa.Table:
    """Rows as a listing has them, which follows no links; a folder that is one is not among them either."""
    nothing = texts([""])[0]
    below = pc.if_else(rows["is_folder"], texts(["/"])[0], nothing)
    links = links_on_the_way(pc.binary_join_element_wise(rows["path"], below, nothing), storage)
    for link in links.drop_null().unique().to_pylist():
        LINK_NOT_FOLLOWED.log(table=storage.url, path=link)
    return rows.filter(pc.is_null(links))


def _roots(storage: Storage) -> list[str]:
    address = storage.address
    if address.scheme == "file":
        path = address.path.rstrip("/")
        return [f"{path}/", f"file:{path}/", f"file://{path}/"]
    url = storage.url.rstrip("/")
    rest = url.removeprefix(address.scheme)
    return [f"{scheme}{rest}/" for scheme in _SPELLINGS.get(address.scheme, (address.scheme,))]


def _check_columns(table: pa.Table, storage: Storage) -> pa.Table:
    missing = [name for name in COLUMNS if name not in table.column_names]
    wrong = []
    columns = []
    for name, kind in zip(COLUMNS, _KINDS, strict=True):
        if name in missing:
            continue
        found = table[name]
        if _is_kind(found.type, kind):
            columns.append(found.cast(kind))
        else:
            wrong.append(f"{name} is {found.type} instead of {kind}")
    if missing or wrong:
        wanted = ", ".join(f"{n} {k}" for n, k in zip(COLUMNS, _KINDS, strict=True))
        what = "; ".join(([f"{', '.join(missing)} missing"] if missing else []) + wrong)
        raise INVALID_INVENTORY_SCHEMA(table=storage.url, expectedSchema=wanted, what=what)
    return pa.table(columns, names=list(COLUMNS))


def _is_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_string(wanted):
        return bool(
            pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
        )
    return bool(pa.types.is_integer(found) if pa.types.is_integer(wanted) else found == wanted)


def _table(rows: Any, storage: Storage) -> pa.Table:
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    batches = list(_batches(rows, storage))
    schema = pa.schema(list(zip(COLUMNS, _KINDS, strict=True)))
    return pa.Table.from_batches(batches, schema)


def _batches(rows: Iterable[Any], storage: Storage) -> Iterator[pa.RecordBatch]:
    remaining = iter(rows)
    while some := list(itertools.islice(remaining, _ROWS)):
        try:
            values = [
                [row[name] for name in COLUMNS] if isinstance(row, Mapping) else list(row) for row in some
            ]
            columns = list(zip(*values, strict=True))
            if len(columns) != len(COLUMNS) or not all(len(row) == len(COLUMNS) for row in values):
                raise ValueError("rows of another length")
            arrays = [_array(column, kind) for column, kind in zip(columns, _KINDS, strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise INVALID_INVENTORY_ROW(table=storage.url, columns=COLUMNS, reason=error) from error
        yield pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    wanted = str if pa.types.is_string(kind) else bool if pa.types.is_boolean(kind) else int
    for value in values:
        if value is not None and (
            not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))
        ):
            raise TypeError(f"{value!r} is no {kind}")
    return array_of_values(values, kind) if wanted is not str else _texts(values)


def _texts(values: Sequence[str | None]) -> pa.Array:
    if None in values:
        return array_of_values(values, pa.string())
    return texts([value or "" for value in values])
