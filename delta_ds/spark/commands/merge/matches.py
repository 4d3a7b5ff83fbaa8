"""Which rows of the target match the source, and the check that each matches one source row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delta_ds.kernel.commands.dml.task import CLAUSE, FILE, NONE, SOURCE
from delta_ds.records import dataclass, field
from delta_ds.spark.commands.merge.rows import Sides
from delta_ds.spark.commands.positions import BUCKET, bit_of, bucket_of, unpack_bitmaps
from delta_ds.spark.native.columns import HIDDEN

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import Column, DataFrame

_MATCHED, _CHANGED, _TIMES, _ROWS, _BITS = (
    f"{HIDDEN}{name}" for name in ("matched", "changed", "times", "rows", "bits")
)


@dataclass(frozen=True)
class Matches:
    """The rows of the table that a MERGE changes: their files, counts and positions.

    Attributes
    ----------
    files
        Numbers of the files with rows that the source matches, or that change.
    changed_files
        Those with rows that change.
    positions
        By number of the file, the positions of rows that change; where they were asked for.
    by_clause
        How many rows of the table change, by number of the clause.
    relevant
        Whether there is anything to commit, even if no row changes: delta-spark then makes a version too.
    ambiguous
        Whether a row of the table is matched by several rows of the source.
    """

    files: list[int] = field(default_factory=list)
    changed_files: list[int] = field(default_factory=list)
    positions: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    by_clause: dict[int, int] = field(default_factory=dict)
    relevant: bool = False
    ambiguous: bool = False


def find_matches(sides: Sides, *, positions: bool) -> Matches:
    """Join source and table, and look at the rows of the table; arguments as of `matches_in`."""
    by_source = any(clause.is_by_source for clause in sides.plan.clauses)
    frame = sides.joined("right" if by_source else "inner")
    return matches_in(frame, frame[SOURCE].isNotNull(), sides, positions=positions)


def matches_in(frame: DataFrame, is_matched: Column, sides: Sides, *, positions: bool) -> Matches:
    """Which rows of the table change, of a join that says so.

    Only bitmaps and counts come to the driver: for every 32,768 rows of a file one of each.

    Parameters
    ----------
    frame
        Rows of the table, in `FILE` and `ROW`, and in `CLAUSE` what changes them; rows without `FILE` do not count.
    is_matched
        Whether the source matches the row.
    sides
        The source and the files that may hold matching rows.
    positions
        Whether the positions of rows that change are wanted.

    Source: delta-spark, `ClassicMergeExecutor.findTouchedFiles`: what counts as a match of several rows.
    """
    from pyspark.sql import functions as F

    clauses = sides.plan.clauses
    matched, changed = F.col(_MATCHED), F.col(_CHANGED)
    place = frame.where(frame[FILE].isNotNull()).select(
        frame[FILE], bucket_of(frame).alias(BUCKET), bit_of(frame).alias(_BITS), frame[CLAUSE],
        is_matched.alias(_MATCHED), (frame[CLAUSE] != NONE).alias(_CHANGED),
    )  # fmt: skip

    # A row that several rows of the source match is deleted once.
    def distinct(condition: Column) -> Column:
        return F.bitmap_count(F.bitmap_construct_agg(F.when(condition, F.col(_BITS))))

    counted = [
        distinct(F.col(CLAUSE) == n).alias(f"{_ROWS}{n}")
        for n, clause in enumerate(clauses)
        if not clause.inserts
    ]
    bits = [F.bitmap_construct_agg(F.when(changed, F.col(_BITS))).alias(_BITS)] if positions else []
    found = (
        place.groupBy(FILE, BUCKET)
        .agg(
            F.count_if(matched).alias(_TIMES), distinct(matched).alias(_MATCHED),
            F.count_if(changed).alias(_CHANGED), *counted, *bits,
        )
        .collect()
    )  # fmt: skip
    only_matched = all(clause.is_matched for clause in clauses)
    return _matches([row.asDict() for row in found], len(clauses), only_matched)


def _matches(rows: list[dict[str, Any]], clauses: int, only_matched: bool) -> Matches:
    by_clause = {n: sum(row.get(f"{_ROWS}{n}") or 0 for row in rows) for n in range(clauses)}
    changed = [row for row in rows if row[_CHANGED]]
    return Matches(
        files=sorted({row[FILE] for row in rows}),
        changed_files=sorted({row[FILE] for row in changed}),
        positions=unpack_bitmaps((row[FILE], row[BUCKET], row[_BITS]) for row in changed if _BITS in row),
        by_clause=by_clause,
        relevant=bool(changed if only_matched else rows),
        ambiguous=any(row[_TIMES] > row[_MATCHED] for row in rows),
    )
