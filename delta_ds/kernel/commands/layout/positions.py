"""Places on one axis for the bounds of a column, of whatever type: numbers that order as the values do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import flags

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
