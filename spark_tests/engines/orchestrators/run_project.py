"""Run a Kedro project, change what has landed, run it again, and print as JSON what its catalog reads.

    python run_project.py FOLDER

FOLDER holds a copy of `examples/kedro`. Imports nothing but Kedro and pyspark.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

FIRST = "id,country,amount,day\n1,DE,10,2026-01-01\n2,FR,5,2026-01-01\n3,DE,7,2026-01-02\n3,DE,7,2026-01-02\n"
SECOND = "id,country,amount,day\n4,PL,2,2026-01-02\n"


def main(project: Path) -> None:
    bootstrap_project(project)
    landed = project / "data" / "landing" / "orders.csv"
    landed.parent.mkdir(parents=True)
    report = {}
    for name, text in {"first": FIRST, "second": SECOND}.items():
        landed.write_text(text)
        with KedroSession.create(project_path=project) as session:
            catalog = session.load_context().catalog
            there = [dataset for dataset in ("orders", "totals") if catalog.exists(dataset)]
            session.run()
            tables = {dataset: rows(catalog, dataset) for dataset in ("orders", "totals", "first_orders")}
            report[name] = {"there": there, **tables}
    print("REPORT " + json.dumps(report))


def rows(catalog: Any, dataset: str) -> list[str]:
    return sorted(",".join(map(str, row)) for row in catalog.load(dataset).collect())


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
