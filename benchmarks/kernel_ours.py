"""The measured process for delta_ds without Spark: `python -m benchmarks.kernel_ours CASE TABLE`.

all              all rows and columns as one Arrow table
batches          the same, batch by batch
sum              of `amount` by `city`
range            the rows of a range of `id` that lies in one file
filter           the rows that one value of `quantity` leaves, 1 % of all, in every file
count            of all rows
delete           of these rows
update           of one column of these rows
merge...         the MERGEs of `kernel_cases.py`
compact          one file of many small ones
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from benchmarks.kernel_cases import FILTER, RANGE, SET, condition, merge_source, merged
from benchmarks.measure import cpu_seconds, report


def main(case: str, table: str) -> None:
    import pyarrow.acero
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    from delta_ds import DeltaLog
    from delta_ds.kernel.commands.optimize.command import optimize
    from delta_ds.kernel.files.scan.scan import Scan
    from delta_ds.kernel.format.expressions.sql import parse_predicate

    parse_predicate("a + 1 = 1")
    log = DeltaLog(table)
    snapshot = log.open_snapshot()
    snapshot.live_files()
    source = merge_source(case, Scan(snapshot).count()) if case.startswith("merge") else None

    def merge() -> int:
        result = merged(log.merge(source, condition(case), "s", "t"), case).execute()
        changed = result.num_target_rows_updated + result.num_target_rows_deleted
        return int(changed + result.num_target_rows_inserted)

    def total() -> int:
        rows = Scan(snapshot, columns=["city", "amount"]).to_arrow()
        return int(rows.group_by("city").aggregate([("amount", "sum")]).num_rows)

    def compact() -> int:
        optimize(log)
        return log.open_snapshot().live_files().num_rows

    cases: dict[str, Callable[[], int]] = {
        "all": lambda: Scan(snapshot).to_arrow().num_rows,
        "batches": lambda: sum(batch.num_rows for batch in Scan(snapshot).to_batches()),
        "sum": total,
        "range": lambda: Scan(snapshot, RANGE).to_arrow().num_rows,
        "filter": lambda: Scan(snapshot, FILTER).to_arrow().num_rows,
        "count": lambda: Scan(snapshot).count(),
        "delete": lambda: log.delete(FILTER).rows or 0,
        "update": lambda: log.update(SET, predicate=FILTER).rows or 0,
        **({case: merge} if source is not None else {}),
        "compact": compact,
    }
    cpu, start = cpu_seconds(), time.perf_counter()
    found = cases[case]()
    report(time.perf_counter() - start, found, cpu_seconds() - cpu)


if __name__ == "__main__":
    main(*sys.argv[1:])
