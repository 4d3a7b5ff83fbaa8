"""The measured process for deltalake, run by its own environment's interpreter: `python kernel_peer.py CASE TABLE`.

The cases are those of `kernel_ours.py`, by deltalake's `QueryBuilder`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from deltalake import DeltaTable, QueryBuilder
from kernel_cases import FILTER, ON, RANGE, SET, VALUES, merge_source  # beside this file
from measure import cpu_seconds, report


def main(case: str, table: str) -> None:
    opened = DeltaTable(table)
    source = merge_source(opened.count()) if case == "merge" else None

    def merge() -> int:
        merger = opened.merge(source, ON, "s", "t").when_matched_update({"amount": "s.amount"})
        found = merger.when_not_matched_insert(VALUES).execute()
        return int(found["num_target_rows_updated"] + found["num_target_rows_inserted"])

    def query(text: str) -> int:
        return int(_query(text).read_all().num_rows)

    def _query(text: str):  # type: ignore[no-untyped-def]
        return QueryBuilder().register("t", opened).execute(text)

    def compact() -> int:
        opened.optimize.compact()
        return len(opened.file_uris())

    cases: dict[str, Callable[[], int]] = {
        "all": lambda: query("SELECT * FROM t"),
        "batches": lambda: sum(batch.num_rows for batch in _query("SELECT * FROM t")),
        "sum": lambda: query("SELECT city, sum(amount) FROM t GROUP BY city"),
        "range": lambda: query(f"SELECT * FROM t WHERE {RANGE}"),
        "filter": lambda: query(f"SELECT * FROM t WHERE {FILTER}"),
        "count": opened.count,
        "delete": lambda: int(opened.delete(FILTER)["num_deleted_rows"]),
        "update": lambda: int(opened.update(SET, predicate=FILTER)["num_updated_rows"]),
        "merge": merge,
        "compact": compact,
    }
    cpu, start = cpu_seconds(), time.perf_counter()
    found = cases[case]()
    report(time.perf_counter() - start, found, cpu_seconds() - cpu)


if __name__ == "__main__":
    main(*sys.argv[1:])
