"""What the measured processes of the part `kernel` ask for; nothing of delta_ds, for the peers' environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

RANGE = "id BETWEEN 1000 AND 1999"
FILTER = "quantity = 50"
SET = {"amount": "amount + 1"}
READS = {
    "all": "all columns, one Arrow table",
    "batches": "all columns, batch by batch",
    "sum": "sum by key",
    "range": "a range in one file",
    "filter": "1 % of the rows of every file",
    "count": "count",
}
CHANGES = {
    "delete": "DELETE of 1 % of the rows of every file",
    "update": "UPDATE of one column in 1 % of the rows of every file",
    "merge": "MERGE: one column of 2.5 % of the rows of every file, as many rows inserted",
    "merge_text": "MERGE by a key of text: one column of 2.5 % of the rows of every file, as many rows inserted",
    "merge_0.01": "MERGE: one column of 0.01 % of the rows, in every hundredth file",
    "merge_1": "MERGE: one column of 1 % of the rows of every file",
    "merge_10": "MERGE: one column of 10 % of the rows of every file",
    "merge_50": "MERGE: one column of 50 % of the rows of every file",
    "merge_delete": "MERGE that deletes 5 % of the rows of every twentieth file",
    "merge_insert": "MERGE that inserts rows only, of which half match 5 % of the rows of every twentieth file",
}
# Of these all is about files that are small.
SMALL_CHANGES = ("delete", "update", "merge")
ON, ON_TEXT = "t.id = s.id", "t.token = s.token"
VALUES = {"id": "s.id", "amount": "s.amount"}
_FILES = 100


def merge_source(case: str, rows: int) -> pa.Table:
    """What is merged into a table with the ids from 0 to `rows`, in 100 files of as many rows."""
    import pyarrow as pa

    steps = {"merge_1": 100, "merge_10": 10, "merge_50": 2}
    ids: list[int] = list(range(0, rows, steps.get(case, 40)))
    if case == "merge_0.01":
        ids = list(range(rows * 50 // _FILES, rows * 51 // _FILES, 100))
    if case in ("merge_delete", "merge_insert"):
        twentieth = range(10, _FILES, 20)
        ids = [i for n in twentieth for i in range(rows * n // _FILES, rows * (n + 1) // _FILES, 20)]
    if case in ("merge", "merge_text", "merge_insert"):
        ids += [i + rows for i in ids]
    found = {"id": pa.array(ids, pa.int64()), "amount": pa.array([1.5] * len(ids))}
    if case == "merge_text":
        found["token"] = pa.array(tokens(ids))
    return pa.table(found)


def tokens(ids: Sequence[int]) -> list[str]:
    """A text for each id: multiplied by an odd number ids stay different, but look like anything."""
    return [f"{value * 0x9E3779B97F4A7C15 % (1 << 64):016X}" for value in ids]


def merged(merger: Any, case: str) -> Any:
    """A MERGE with the clauses of a case; the API is the same on both sides."""
    if case == "merge_delete":
        return merger.when_matched_delete()
    if case != "merge_insert":
        merger = merger.when_matched_update({"amount": "s.amount"})
    if case in ("merge", "merge_text", "merge_insert"):
        merger = merger.when_not_matched_insert(
            {**VALUES, **({"token": "s.token"} if case == "merge_text" else {})}
        )
    return merger


def condition(case: str) -> str:
    """What rows match by."""
    return ON_TEXT if case == "merge_text" else ON
