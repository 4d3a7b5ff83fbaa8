"""Look into a Delta table without Spark: the kernel alone.

    python examples/inspect_log.py [path of a table]

Look at: why each file is read or skipped for a condition, before anything is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from delta_ds import DeltaLog

SALES = Path(__file__).resolve().parent / "data" / "sales"
CONDITION = "country = 'DE' AND sold_on >= DATE'2026-04-01'"


def main(path: str) -> None:
    log = DeltaLog(path)
    snapshot = log.snapshot()
    print(f"version {snapshot.version}, partitioned by {', '.join(snapshot.partition_columns)}")
    for field in snapshot.schema:
        print(f"  {field.name}: {field.type}")

    print("\nhistory")
    for entry in log.history(limit=3):
        print(f"  {entry['version']}  {entry['timestamp']:%Y-%m-%d %H:%M:%S}  {entry['operation']}")

    scan = snapshot.scan(CONDITION, columns=["order_id", "product", "amount"])
    print(f"\n{CONDITION}")
    for file in scan.explain().to_pylist():
        print(f"  {'read' if file['kept'] else 'skip'}  {file['path'][:24]:24}  {file['rule']}")

    rows = scan.to_arrow()
    print(f"\n{rows.num_rows} orders, the first of them {rows.slice(0, 1).to_pylist()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(SALES))
