"""Run a DAG of Airflow once for each of some days, and print the state of its tasks as JSON.

    python run_dag.py FILE DAY...

Imports nothing but Airflow, which reads its folders from the environment.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone

from airflow.dag_processing.dagbag import DagBag


def main(file: str, days: list[str]) -> None:
    bag = DagBag(file)
    assert not bag.import_errors, bag.import_errors
    (dag,) = bag.dags.values()
    for day in days:
        run = dag.test(logical_date=datetime.fromisoformat(day).replace(tzinfo=timezone.utc))
        states = {task.task_id: str(task.state) for task in run.get_task_instances()}
        print("RUN " + json.dumps({"day": day, "state": str(run.state), "run": run.run_id, "tasks": states}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
