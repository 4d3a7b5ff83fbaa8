"""The tables of the part `native`: ten columns with statistics, the same files under deletion vectors, a dimension.

Plain Python and pyarrow, no JVM and nothing of delta_ds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data_tables import VectorFile, rows_between
from benchmarks.kernel_cases import tokens
from benchmarks.log_tables import (
    COLUMNS,
    CREATED_MS,
    commit_info,
    metadata,
    protocol,
    stable_uuid,
    stat_json,
    write_commit,
)

WIDE = [*((name, kind) for name, kind, _ in COLUMNS), ("token", "string"), ("flag", "boolean")]
DIMENSION = [("sold_on", "date"), ("season", "string"), ("weight", "integer")]
DAYS = 3650
# Statistics say nothing of booleans.
_WITHOUT_BOUNDS = ("flag",)


def write_wide_table(root: Path, rows: int, files: int) -> Path:
    """Write a table of `rows` rows of ten columns in `files` files, `id` rising from file to file.

    Every file has statistics of all columns, as delta-spark writes them.
    """
    bounds = [rows * n // files for n in range(files + 1)]
    adds = []
    root.mkdir(parents=True)
    for n in range(files):
        table = wide_rows(bounds[n], bounds[n + 1])
        adds.append(_write_file(root, n, table))
    return write_log(root, WIDE, adds, [])


def write_vector_table(root: Path, plain: Path, deleted_share: float) -> Path:
    """Write a table over links to the data files of another one, with a deletion vector on each.

    The vectors hide about that share of the rows of every file, spread evenly.
    """
    root.mkdir(parents=True)
    adds = adds_of(plain)
    step = max(1, round(1 / deleted_share))
    with VectorFile(root) as vectors:
        for add in adds:
            os.link(plain / add["path"], root / add["path"])
            stats = json.loads(add["stats"])
            add["stats"] = json.dumps({**stats, "tightBounds": False})
            add["deletionVector"] = vectors.append(np.arange(0, stats["numRecords"], step, dtype=np.uint32))
    return write_log(root, WIDE, adds, ["deletionVectors"])


def write_dimension(root: Path) -> Path:
    """Write a table of one file: a row for each day that `sold_on` can be."""
    days = np.arange(DAYS, dtype=np.int32)
    seasons = pa.array(["winter", "spring", "summer", "autumn"])
    table = pa.table(
        [
            pa.array(days).cast(pa.date32()),
            pa.DictionaryArray.from_arrays(pa.array(days // 91 % 4), seasons).cast(pa.string()),
            pa.array(days % 7 + 1),
        ],
        names=[name for name, _ in DIMENSION],
    )
    root.mkdir(parents=True)
    return write_log(root, DIMENSION, [_write_file(root, 0, table)], [])


def files_of(root: Path) -> list[tuple[str, int, int]]:
    """Path, lowest and highest `id` (0 where there is none) of every data file of a table made here."""
    found = []
    for add in adds_of(root):
        stats = json.loads(add["stats"])
        bounds = (stats[key].get("id", 0) for key in ("minValues", "maxValues"))
        found.append((str(root / add["path"]), *bounds))
    return found


def wide_rows(start: int, stop: int) -> pa.Table:
    """The rows with these ids, `stop` excluded."""
    ids = np.arange(start, stop, dtype=np.uint64)
    table = rows_between(start, stop).append_column("token", pa.array(tokens(range(start, stop))))
    return table.append_column("flag", pa.array(ids % 3 == 0))


def _write_file(root: Path, n: int, table: pa.Table) -> dict[str, Any]:
    """Write the data file of number `n`; the body of its `add`."""
    name = f"part-{n:05d}-{stable_uuid(n, salt=11)}.c000.snappy.parquet"
    pq.write_table(table, root / name, compression="snappy", row_group_size=1_000_000)
    return {
        "path": name,
        "partitionValues": {},
        "size": (root / name).stat().st_size,
        "modificationTime": CREATED_MS,
        "dataChange": True,
        "stats": _stats(table),
    }


def _stats(table: pa.Table) -> str:
    bounds = {
        name: pc.min_max(table.column(name)).as_py()
        for name in table.column_names
        if table.num_rows and name not in _WITHOUT_BOUNDS
    }
    record = {
        "numRecords": table.num_rows,
        "minValues": {name: stat_json(found["min"]) for name, found in bounds.items()},
        "maxValues": {name: stat_json(found["max"]) for name, found in bounds.items()},
        "nullCount": {name: table.column(name).null_count for name in table.column_names},
    }
    return json.dumps(record)


def write_log(
    root: Path,
    fields: Sequence[tuple[str, str]],
    adds: Sequence[dict[str, Any]],
    features: Sequence[str],
    properties: Mapping[str, str] | None = None,
) -> Path:
    """Write version 0 of a table over files that are there; `adds` are the bodies of its `add` actions."""
    (root / "_delta_log").mkdir()
    lines = [commit_info(0), json.dumps({"protocol": protocol(features)})]
    lines.append(json.dumps({"metaData": {**metadata(fields, []), "configuration": dict(properties or {})}}))
    write_commit(root / "_delta_log", 0, [*lines, *(json.dumps({"add": add}) for add in adds)])
    return root


def adds_of(root: Path) -> list[dict[str, Any]]:
    """The bodies of the `add` actions of a table made here."""
    text = (root / "_delta_log" / f"{0:020d}.json").read_text(encoding="utf-8")
    actions = [json.loads(line) for line in text.splitlines()]
    return [action["add"] for action in actions if "add" in action]
