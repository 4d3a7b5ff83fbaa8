"""The measured process for deltalake, run by its own environment's interpreter: `python kernel_peer.py CASE TABLE`.

The cases are those of `kernel_ours.py`, by deltalake's `QueryBuilder`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from deltalake import DeltaTable, QueryBuilder
from kernel_cases import FILTER, RANGE, SET, condition, merge_source, merged  # beside this file
from measure import cpu_seconds, report


def main(case: str, table: str) -> None:
    opened = DeltaTable(table)
    source = merge_source(case, opened.count()) if case.startswith("merge") else None

    def merge() -> int:
        found = merged(opened.merge(source, condition(case), "s", "t"), case).execute()
        return int(sum(found[f"num_target_rows_{what}"] for what in ("updated", "deleted", "inserted")))

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
        **({case: merge} if source is not None else {}),
        "compact": compact,
    }
    cpu, start = cpu_seconds(), time.perf_counter()
    found = cases[case]()
    report(time.perf_counter() - start, found, cpu_seconds() - cpu)


if __name__ == "__main__":
    main(*sys.argv[1:])
