"""Positions of matching rows: counted by file, or aggregated to bitmaps.

Source: Spark's bitmap functions, which aggregate on executors: at most one bit for each row of a file that is
touched comes to the driver, whatever is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.kernel.commands.dml.task import FILE, ROW
from delta_ds.spark.native.columns import HIDDEN

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import Column, DataFrame

BUCKET, _BITS = f"{HIDDEN}bucket", f"{HIDDEN}bits"
_BUCKET_ROWS = 32768  # of Spark's bitmap_bucket_number


def bucket_of(frame: DataFrame) -> Column:
    """Which bitmap of its file a row is in; Spark counts rows and bitmaps from one."""
    from pyspark.sql import functions as F

    return F.bitmap_bucket_number(frame[ROW] + 1)


def bit_of(frame: DataFrame) -> Column:
    """Which bit of the bitmap a row is."""
    from pyspark.sql import functions as F

    return F.bitmap_bit_position(frame[ROW] + 1)


def positions(found: DataFrame) -> dict[int, npt.NDArray[np.uint64]]:
    """The distinct positions of the rows of a frame.

    Parameters
    ----------
    found
        With the columns `FILE` and `ROW`.

    Returns
    -------
    dict
        By number of the file, uint64 positions, ascending.
    """
    from pyspark.sql import functions as F

    placed = found.select(found[FILE], bucket_of(found).alias(BUCKET), bit_of(found).alias(_BITS))
    gathered = placed.groupBy(FILE, BUCKET).agg(F.bitmap_construct_agg(_BITS).alias(_BITS))
    return unpack_bitmaps((row[0], row[1], row[2]) for row in gathered.collect())


def unpack_bitmaps(bitmaps: Iterable[tuple[int, int, bytes]]) -> dict[int, npt.NDArray[np.uint64]]:
    """Positions by number of the file, from its number, the number of a bitmap and its bits."""
    parts: dict[int, list[npt.NDArray[np.uint64]]] = {}
    for number, bucket, bits in sorted(bitmaps, key=lambda found: found[:2]):
        found = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little"))
        rows = found.astype(np.uint64) + np.uint64((bucket - 1) * _BUCKET_ROWS)
        parts.setdefault(number, []).append(rows)
    return {number: np.concatenate(rows) for number, rows in parts.items()}


def count_by_file(found: DataFrame) -> dict[int, int]:
    """How many rows of a frame lie in each file, by its number."""
    from pyspark.sql import functions as F

    return {row[0]: row[1] for row in found.groupBy(FILE).agg(F.count(F.lit(1))).collect()}
