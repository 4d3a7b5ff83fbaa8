"""Answer the optimizer's questions about aggregates from the log.

Questions and answers are JSON texts, as `LogAggregates.java` writes and reads them.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.scan.aggregates import Aggregate, exact_aggregates

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.schema.types import DataType, StructType
    from delta_ds.spark.native.file_index import DeltaFileIndex

_LOGGER = logging.getLogger("delta_ds")


def answer(question: str) -> str | None:
    """Answer a question about all rows of a relation.

    Parameters
    ----------
    question
        `index`: the identity of the relation's file index. `deletions`: whether the plan leaves out deleted rows.
        `aggregates`: list of `function` (count, min, max), `path` (names as the relation has them; empty for rows)
        and `type` (Spark's name of the column's type).

    Returns
    -------
    str or None
        A list of texts, null for SQL's null: integers, decimals and floats as Java reads them, `true` or `false`,
        strings as they are, dates in days and timestamps in microseconds since 1970. None: the scan has to tell.
    """
    asked = json.loads(question)
    index = _index(asked["index"])
    if index is None or not _covers(index, bool(asked["deletions"])):
        return None
    requests = [_request(index, item) for item in asked["aggregates"]]
    if not all(requests):
        return None
    found = exact_aggregates(index.snapshot, [request for request in requests if request is not None])
    if found is None:
        return None
    _LOGGER.debug("aggregates_from_log table=%s", asked["index"])
    return json.dumps([_text(value) for value in found])


def _index(identity: str) -> DeltaFileIndex | None:
    from delta_ds.spark.native.file_index import DeltaFileIndex

    return DeltaFileIndex.of_identity(identity)


def _covers(index: DeltaFileIndex, without_deleted: bool) -> bool:
    """Whether the plan's rows are the live rows of the version: all files, and no deleted rows."""
    return len(index.rows) == index.live.num_rows and (without_deleted or not index.has_deletions)


def _request(index: DeltaFileIndex, item: dict[str, Any]) -> Aggregate | None:
    """The aggregate in the table's own names; None for what is no column of the table."""
    path = tuple(item["path"])
    if not path:
        return Aggregate(item["function"])
    logical = index.columns.logical(path)
    if logical is None or str(_type_of(index.snapshot.schema, logical)) != item["type"]:
        return None
    return Aggregate(item["function"], logical)


def _type_of(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    level: Any = schema
    for name in path:
        field = level.find(name) if hasattr(level, "find") else None
        if field is None:
            return None
        level = field.type
    found: DataType = level
    return found


def _text(value: pa.Scalar) -> str | None:
    import pyarrow as pa

    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_temporal(kind):
        # Python's own dates and times would not hold them all.
        return str(value.value)
    plain = value.as_py()
    if pa.types.is_boolean(kind):
        return "true" if plain else "false"
    if pa.types.is_decimal(kind):
        return format(plain, "f")
    # A float as the double that is equal to it, which Java rounds back to the same float.
    return _float(plain) if pa.types.is_floating(kind) else str(plain)


def _float(value: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))
