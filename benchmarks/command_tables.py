"""The tables of the part `commands`: plain Python and pyarrow, no JVM and nothing of delta_ds."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import log_table, made_once
from benchmarks.log_tables import (
    CREATED_MS,
    PARTITION,
    FileRange,
    add_lines,
    commit_info,
    log_fields,
    metadata,
    protocol,
    remove_lines,
    write_commit,
)
from benchmarks.native_tables import WIDE, adds_of, wide_rows, write_log, write_wide_table

_SOURCE_FILES = 4


@dataclass(frozen=True)
class Sizes:
    """How large the tables are.

    `rows` in `files` files: what is deleted from, updated and merged into, with `merged` rows. `joined`: files of a
    thousand rows each that are compacted. `ordered`: rows that are z-ordered. `vacuumed`: files in a folder, half of
    them not needed. `planned`: files of a table that is only a log.
    """

    rows: int
    files: int
    merged: int
    joined: int
    ordered: int
    vacuumed: int
    planned: int


def sizes(scale: float) -> Sizes:
    """The sizes at a scale; 1 is what the targets speak of."""

    def scaled(full: int, least: int) -> int:
        return max(least, round(full * scale))

    return Sizes(
        rows=scaled(10_000_000, 1000),
        files=scaled(40, 4),
        merged=scaled(500_000, 100),
        joined=scaled(1000, 10),
        ordered=scaled(5_000_000, 1000),
        vacuumed=scaled(50_000, 40),
        planned=scaled(300_000, 60),
    )


def make_tables(folder: Path, size: Sizes, names: Sequence[str]) -> dict[str, str]:
    """The tables of some names, made where they are not there yet; their paths."""
    plain = f"commands-{size.rows}-rows"

    def wide(path: Path) -> Path:
        return write_wide_table(path, size.rows, size.files)

    def vectors(path: Path) -> Path:
        return write_with_vectors(path, made_once(folder / plain, wide))

    makers = {
        "plain": (plain, wide),
        "vectors": (f"{plain}-vectors", vectors),
        "source": (
            f"{plain}-{size.merged}-merged",
            lambda path: write_source(path, size.rows, size.merged),
        ),
        "small files": (
            f"commands-{size.joined}-files",
            lambda path: write_wide_table(path, 1000 * size.joined, size.joined),
        ),
        "to order": (
            f"commands-{size.ordered}-to-order",
            lambda path: write_wide_table(path, size.ordered, size.files),
        ),
        "to vacuum": (
            f"commands-{size.vacuumed}-to-vacuum",
            lambda path: write_rubbish(path, size.vacuumed),
        ),
    }
    found = {
        name: str(made_once(folder / makers[name][0], makers[name][1])) for name in names if name in makers
    }
    if "log" in names:
        found["log"] = log_table(folder, "v1", size.planned)
    return found


def numbers(size: Sizes) -> dict[str, Any]:
    """Sizes as the measured processes are told."""
    return asdict(size)


def write_with_vectors(root: Path, plain: Path) -> Path:
    """Write a table over links to the data files of another one, in which a DELETE may mark rows."""
    root.mkdir(parents=True)
    adds = adds_of(plain)
    for add in adds:
        os.link(plain / add["path"], root / add["path"])
    return write_log(root, WIDE, adds, ["deletionVectors"], {"delta.enableDeletionVectors": "true"})


def write_source(root: Path, rows: int, merged: int) -> Path:
    """Write the source of a merge as plain Parquet files: `merged` rows, in no order.

    Half of them have the `id` of a row of a table of `rows` rows, spread over all of it; the other half are new.
    """
    known = np.arange(merged // 2, dtype=np.int64) * (rows // (merged // 2))
    new = np.arange(rows, rows + merged - len(known), dtype=np.int64)
    table = wide_rows(rows, rows + merged).set_column(0, "id", pa.array(np.concatenate([known, new])))
    table = table.take(pa.array(np.random.default_rng(1).permutation(merged)))
    root.mkdir(parents=True)
    bounds = [merged * n // _SOURCE_FILES for n in range(_SOURCE_FILES + 1)]
    for n in range(_SOURCE_FILES):
        pq.write_table(table.slice(bounds[n], bounds[n + 1] - bounds[n]), root / f"part-{n:05d}.parquet")
    return root


def write_rubbish(root: Path, files: int) -> Path:
    """Write a table whose folder holds `files` files, half of them removed; all is older than any retention.

    The files are empty: nobody reads them.
    """
    log = root / "_delta_log"
    log.mkdir(parents=True)
    lines = [commit_info(0), json.dumps({"protocol": protocol([])})]
    lines += [json.dumps({"metaData": metadata(log_fields(), [PARTITION])}), *add_lines(FileRange(0, files))]
    write_commit(log, 0, lines)
    write_commit(log, 1, [commit_info(1), *remove_lines(FileRange(0, files // 2))])
    for line in lines:
        action = json.loads(line)
        if "add" in action:
            path = root / action["add"]["path"]
            path.parent.mkdir(exist_ok=True)
            path.touch()
            _age(path)
    for path in log.iterdir():
        _age(path)
    return root


def _age(path: Path) -> None:
    os.utime(path, (CREATED_MS / 1000, CREATED_MS / 1000))
