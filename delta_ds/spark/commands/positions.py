"""Positions of matching rows: counted by file, or aggregated to bitmaps.

Source: Spark's bitmap functions, which aggregate on executors: at most one bit for each row of a file that is
touched comes to the driver, whatever is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delta_ds.kernel.commands.dml.changed_rows import FILE, ROW
from delta_ds.spark.native.columns import HIDDEN

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import DataFrame

_BUCKET, _BITS = f"{HIDDEN}bucket", f"{HIDDEN}bits"
_BUCKET_ROWS = 32768  # of Spark's bitmap_bucket_number


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

    # Spark counts rows and bitmaps from one.
    number = found[ROW] + 1
    places = (F.bitmap_bucket_number(number).alias(_BUCKET), F.bitmap_bit_position(number).alias(_BITS))
    placed = found.select(found[FILE], *places)
    gathered = placed.groupBy(FILE, _BUCKET).agg(F.bitmap_construct_agg(_BITS).alias(_BITS))
    parts: dict[int, list[npt.NDArray[np.uint64]]] = {}
    for file, bucket, bits in sorted(gathered.collect(), key=lambda row: tuple(row)[:2]):
        set_bits = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little"))
        rows = set_bits.astype(np.uint64) + np.uint64((bucket - 1) * _BUCKET_ROWS)
        parts.setdefault(file, []).append(rows)
    return {file: np.concatenate(rows) for file, rows in parts.items()}


def count_by_file(found: DataFrame) -> dict[int, int]:
    """How many rows of a frame lie in each file, by its number."""
    from pyspark.sql import functions as F

    return {row[0]: row[1] for row in found.groupBy(FILE).agg(F.count(F.lit(1))).collect()}
