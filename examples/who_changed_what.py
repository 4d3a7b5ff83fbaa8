"""Who changed this row, and when: rows with the commits that last wrote them, without Spark.

    python examples/who_changed_what.py [an empty folder]

Look at: the DELETE writes the other rows of its file anew, and none of them names it.
"""

from __future__ import annotations

import sys
import tempfile

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.commands.dml.delete import delete

COLUMNS = ["id", "amount", "_commit_version", "_commit_operation", "_commit_user_metadata"]


def main(folder: str) -> None:
    log = DeltaLog(folder)
    first = pa.table({"id": [1, 2, 3, 4], "amount": [10.0, 20.0, 30.0, 40.0]})
    log.write(first, options={"delta.enableRowTracking": "true", "userMetadata": "orders of Monday"})
    log.write(pa.table({"id": [5], "amount": [50.0]}), options={"userMetadata": "orders of Tuesday"})
    delete(log, "id = 2")

    print("who wrote the rows that are there")
    for row in log.blame("amount > 20").to_arrow().select(COLUMNS).to_pylist():
        print(f"  order {row['id']}: version {row['_commit_version']}, {row['_commit_user_metadata']}")

    print("what each commit has left")
    counted = log.blame(columns=["id"]).to_arrow().group_by("_commit_version").aggregate([("id", "count")])
    for row in counted.sort_by("_commit_version").to_pylist():
        print(f"  version {row['_commit_version']}: {row['id_count']} rows")

    print("and the history, which knows of the others too")
    for entry in log.history():
        print(f"  version {entry['version']}: {entry['operation']}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(temporary)
