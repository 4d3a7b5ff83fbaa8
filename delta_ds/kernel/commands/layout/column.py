"""`ColumnLayout`: the ranges of a column in the files of a version, and how well they let lookups skip files.

The bounds of a column, of whatever type, have places on one axis: numbers that order as the values do.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.kernel.base.arrow_buffers import flags
from delta_ds.kernel.base.card import Card, Shown
from delta_ds.kernel.files.scan.file_pruning import find_statistics_column
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.column_paths import Path, parse_path, quote, resolve, show
from delta_ds.kernel.format.schema.types import DataType, StructField, StructType, walk
from delta_ds.kernel.format.values import partition_values
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.format.values.statistics_json import has_bounds
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from delta_ds.kernel.log.snapshot import Snapshot

_DAY_US = 86_400_000_000
# So many bytes of a text behind what all texts begin with: as many as fit into one number.
_BYTES = 7


def positions(low: pa.Array, high: pa.Array) -> tuple[Any, Any]:
    """Where the bounds of files lie on one axis.

    Parameters
    ----------
    low, high
        Of one type, a value a file, without nulls.

    Returns
    -------
    two numpy float64 arrays
        Numbers as they are; dates and timestamps as days since 1970; booleans as 0 and 1; texts and bytes between 0
        and 1, by the bytes behind what all of them begin with. What is infinite or NaN is put at the end of the
        axis.
    """
    import numpy as np

    both = pa.concat_arrays([low, high])
    kind = both.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        found = _of_texts(both.cast(pa.binary()))
    elif pa.types.is_boolean(kind):
        found = flags(both).astype(np.float64)
    elif pa.types.is_date(kind):
        found = _floats(both.cast(pa.int32()))
    elif pa.types.is_timestamp(kind):
        found = _floats(both.cast(pa.int64())) / _DAY_US
    else:
        found = _floats(both)
    found = _finite(found)
    return found[: len(low)], found[len(low) :]


def _floats(values: pa.Array) -> Any:
    import numpy as np

    floats = pc.cast(values, pa.float64(), safe=False)
    return np.array(np.frombuffer(floats.buffers()[1], np.float64)[floats.offset :][: len(floats)])


def _finite(values: Any) -> Any:
    import numpy as np

    finite = values[np.isfinite(values)]
    if len(finite) == len(values):
        return values
    least, most = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    # NaN is the greatest of numbers, as in Spark.
    return np.nan_to_num(values, nan=most, posinf=most, neginf=least)


def _of_texts(values: pa.Array) -> Any:
    """Digits of a number between 0 and 1: the bytes that occur, and a least one for the end of a text."""
    import numpy as np

    if not len(values):
        return np.empty(0)
    start = _common_prefix(values)
    digits = _bytes_at(values, start)
    used = digits[digits >= 0]
    if not len(used):
        return np.zeros(len(values))
    least, base = int(used.min()), int(used.max() - used.min()) + 2
    digits = np.where(digits >= 0, digits - least + 1, 0)
    found = digits @ (
        base ** np.arange(_BYTES - 1, -1, -1)
    )  # whole numbers, as sums of fractions lose the order
    return found / float(base**_BYTES)


def _common_prefix(values: pa.Array) -> int:
    """How many bytes all values begin with alike: those that the least and the greatest do."""
    import os

    order = pc.sort_indices(values)
    least, most = values[order[0].as_py()].as_py(), values[order[-1].as_py()].as_py()
    return len(os.path.commonprefix([least, most]))


def _bytes_at(values: pa.Array, start: int) -> Any:
    """Of each value so many bytes from a place on, -1 behind its end."""
    import numpy as np

    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    data = values.buffers()[2]
    stored = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    at = ends[:-1, None] + start + np.arange(_BYTES)
    inside = at < ends[1:, None]
    return np.where(inside, stored[np.minimum(at, len(stored) - 1)].astype(np.int64), -1)


@dataclass(frozen=True)
class ColumnLayout(Shown):
    """The ranges of a column in the live files of a version; made by `Snapshot.column_layout`.

    Attributes
    ----------
    table, version
        What was looked at.
    column
        Its name, parts between dots.
    type
        Its type, as Spark writes it.
    files
        One row a live file: `path` string as in the log; `size` int64, bytes; `rows` and `nulls` int64 as the log
        counts them, deleted rows included, null for not known; `low` and `high` in the column's Arrow type, null where
        the log tells no bounds. Of a partition column both are the file's value.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> layout = DeltaLog("/data/orders").snapshot().column_layout("id")
    >>> layout.num_files, layout.known.select(["low", "high"]).to_pydict()
    (4, {'low': [1, 2, 3, 4], 'high': [1, 2, 3, 4]})
    """

    table: str
    version: int
    column: str
    type: str
    files: pa.Table

    @property
    def num_files(self) -> int:
        """How many files are live."""
        return int(self.files.num_rows)

    @cached_property
    def known(self) -> pa.Table:
        """Of `files` those with bounds, by `low`, then `high`; with their places on an axis (see `positions`).

        These are the columns `low_at` and `high_at`, float64.
        """
        table = self.files.filter(_has_bounds(self.files))
        low, high = positions(table["low"].combine_chunks(), table["high"].combine_chunks())
        table = table.append_column("low_at", _column(low)).append_column("high_at", _column(high))
        return table.sort_by([("low", "ascending"), ("high", "ascending")])

    @cached_property
    def num_unknown(self) -> int:
        """Files that the log tells no bounds of, and that may hold values: every lookup reads them."""
        return self.num_files - int(self.known.num_rows) - self.num_without_values

    @cached_property
    def num_without_values(self) -> int:
        """Files in which the column is null in every row: no lookup of a value reads them."""
        all_null = pc.equal(self.files["rows"], self.files["nulls"]).fill_null(FALSE)
        return int(pc.sum(pc.and_(all_null, pc.invert(_has_bounds(self.files)))).as_py() or 0)

    def files_read(self, share: float = 0.0) -> float:
        """How many files a lookup reads, on average.

        Lookups are spread as the rows are, and the rows of a file evenly between its bounds.

        Parameters
        ----------
        share
            Of the rows that the lookup finds: 0 for the value of one row, 0.1 for a range with a tenth of them.

        Raises
        ------
        InvalidOptionError
            It is not between 0 and 1.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("/data/orders").snapshot().column_layout("id").files_read()
        1.0
        """
        if not 0 <= share <= 1:
            raise InvalidOptionError(
                f"share must be between 0 and 1, and is {share}", parameters={"share": share}
            )
        return self.num_unknown + mean_files_read(*self._shares, share)

    def fraction_read(self, share: float = 0.0) -> float:
        """The same as a fraction of all files; 0 for a table without files.

        Parameters
        ----------
        share
            As in `files_read`.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("/data/orders").snapshot().column_layout("id").fraction_read()
        0.25
        """
        return self.files_read(share) / self.num_files if self.num_files else 0.0

    def depth(self) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
        """How many files with bounds hold each place of the axis; see `lookups.depth`.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> places, files = DeltaLog("/data/orders").snapshot().column_layout("id").depth()
        >>> int(files.max())
        1
        """
        return depth(*self._places)

    @cached_property
    def _shares(self) -> tuple[Any, Any]:
        import numpy as np

        rows = pc.cast(self.known["rows"], pa.float64()).combine_chunks()
        typical = pc.mean(rows).as_py() or 1.0
        weights = np.array(rows.fill_null(typical))
        return shares_of_rows(*self._places, weights)

    @cached_property
    def _places(self) -> tuple[Any, Any]:
        import numpy as np

        return np.array(self.known["low_at"]), np.array(self.known["high_at"])

    def _card(self) -> Card:
        known = bool(self.num_files)
        return Card(
            f"{self.column} ({self.type}) in {self.table}, version {self.version}",
            (
                ("files", self.num_files),
                ("files without bounds, always read", self.num_unknown or None),
                ("files without values, never read", self.num_without_values or None),
                ("read for one value, on average", self._read_text(0) if known else None),
                ("read for a tenth of the rows", self._read_text(0.1) if known else None),
            ),
        )

    def _read_text(self, share: float) -> str:
        return f"{self.files_read(share):,.1f} files ({self.fraction_read(share):.1%})"

    def __str__(self) -> str:
        return self._card().text()

    __repr__ = __str__


def _has_bounds(files: pa.Table) -> pa.ChunkedArray:
    return pc.and_(files["low"].is_valid(), files["high"].is_valid())


def _column(values: Any) -> pa.Array:
    return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values.copy())])


def column_layout(snapshot: Snapshot, column: str, *, timezone: str = "UTC") -> ColumnLayout:
    """See `Snapshot.column_layout`."""
    path, field = resolve(snapshot.schema, parse_path(column), snapshot.storage.url)
    files = snapshot.live_files()
    everyone = row_numbers(files.num_rows)
    if path[0] in snapshot.partition_columns and len(path) == 1:
        texts = files.partition_texts(physical_name(field, snapshot.mapping_mode))
        low = high = partition_values.parse(texts, field.type, timezone)
        statistics = load_statistics(files, everyone, [])
        nulls = pc.if_else(low.is_valid(), pc.multiply(statistics.num_records, 0), statistics.num_records)
    else:
        _check_bounds(snapshot, path, field)
        leaf = find_statistics_column(snapshot.schema, path, snapshot.mapping_mode)
        if leaf is None:
            raise _without_bounds(snapshot, path, field.type)
        statistics = load_statistics(files, everyone, [(leaf.path, leaf.type)])
        low, high = statistics.min[leaf.path], statistics.max[leaf.path]
        nulls = statistics.null_count[leaf.path]
    table = pa.table(
        {
            "path": files.table["path"],
            "size": files.table["size"],
            "rows": statistics.num_records,
            "nulls": nulls,
            "low": low,
            "high": high,
        }
    )
    return ColumnLayout(snapshot.storage.url, snapshot.version, show(path), str(field.type), table)


def _check_bounds(snapshot: Snapshot, path: Path, field: StructField) -> None:
    if isinstance(field.type, StructType):
        inside = [p for p, f in walk(field.type, path) if has_bounds(f.type)]
        hint = (
            f"give one of its fields: {', '.join(map(quote, inside[:20]))}"
            if inside
            else "nor have its fields"
        )
        raise UnsupportedOperationError(
            f"{show(path)} of {snapshot.storage.url} is a struct, of which logs hold no least and greatest value; "
            f"{hint}",
            parameters={"column": show(path)},
        )
    if not has_bounds(field.type):
        raise _without_bounds(snapshot, path, field.type)


def _without_bounds(snapshot: Snapshot, path: Path, data_type: DataType) -> UnsupportedOperationError:
    able = [quote(p) for p, f in walk(snapshot.schema) if has_bounds(f.type) and not _in_collection(p)]
    others = f"; columns that have them: {', '.join(able[:20])}" if able else ""
    return UnsupportedOperationError(
        f"logs hold no least and greatest value of columns like {show(path)} of {snapshot.storage.url}, which is "
        f"{data_type}: no file is ever skipped by it{others}",
        parameters={"column": show(path)},
    )


def _in_collection(path: Path) -> bool:
    return any(step in ("element", "key", "value") for step in path[1:])


# --- how many files lookups of a column's values read, by the ranges of the files alone


def shares_of_rows(low: Any, high: Any, rows: Any) -> tuple[Any, Any]:
    """How much of all rows lies before the first value of each file, and up to its last one.

    The rows of a file are taken to be spread evenly between its bounds.

    Parameters
    ----------
    low, high
        float64, a value a file: see `positions`.
    rows
        float64, what each file weighs.

    Returns
    -------
    two numpy float64 arrays
        Shares between 0 and 1.
    """
    import numpy as np

    points, at = np.unique(np.concatenate([low, high]), return_inverse=True)
    if not len(points) or not rows.sum():
        return np.zeros(len(low)), np.ones(len(low))
    first, last = at[: len(low)], at[len(low) :]
    span = max(points[-1] - points[0], np.finfo(float).tiny)
    width = (high - low) / span
    # Ranges that are next to nothing beside the whole one count as points: their density would drown the others'.
    point = width <= 1e-9
    at_once, density = np.zeros(len(points)), np.zeros(len(points))
    np.add.at(at_once, first[point], rows[point])
    each = rows[~point] / width[~point]
    np.add.at(density, first[~point], each)
    np.add.at(density, last[~point], -each)
    between = np.maximum(np.cumsum(density)[:-1], 0) * np.diff(points) / span
    before = np.concatenate([[0.0], np.cumsum(at_once[:-1] + between)])
    up_to = before + at_once
    return before[first] / up_to[-1], up_to[last] / up_to[-1]


def mean_files_read(before: Any, up_to: Any, share: float) -> float:
    """How many files hold some of a range of values, on average over all ranges with that share of the rows.

    Parameters
    ----------
    before, up_to
        See `shares_of_rows`.
    share
        Of the rows, from 0 (the value of a row) up to 1 (all values).
    """
    import numpy as np

    if share >= 1:
        return float(len(before))
    # A range that begins at the share u of the rows meets a file for every u between these.
    lengths = np.minimum(up_to, 1 - share) - np.maximum(before - share, 0)
    return float(np.maximum(lengths, 0).sum() / (1 - share))


def depth(low: Any, high: Any) -> tuple[Any, Any]:
    """How many ranges hold each place, as a line to draw.

    Returns
    -------
    two numpy arrays
        Places in ascending order, each once for every height there, and the heights (int64).
    """
    import numpy as np

    points = np.unique(np.concatenate([low, high]))
    lows, highs = np.sort(low), np.sort(high)
    begun = np.searchsorted(lows, points, side="right")
    at = begun - np.searchsorted(highs, points, side="left")
    after = begun - np.searchsorted(highs, points, side="right")
    before = np.concatenate([[0], after])[:-1]
    return np.repeat(points, 3), np.stack([before, at, after], axis=1).ravel()
