"""What the measured processes of the part `kernel` ask for; nothing of delta_ds, for the peers' environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
}
ON = "t.id = s.id"
VALUES = {"id": "s.id", "amount": "s.amount"}


def merge_source(rows: int) -> pa.Table:
    """What is merged into a table with the ids from 0 to `rows`: every fortieth of them, and as many new ones."""
    import numpy as np
    import pyarrow as pa

    ids = np.arange(0, rows, 40)
    return pa.table({"id": np.concatenate([ids, ids + rows]), "amount": np.full(2 * len(ids), 1.5)})
