"""An Airflow DAG that loads the orders of each day into a Delta table, and maintains the table. No task needs Java.

Copy it into your folder of DAGs, and set ORDERS_LANDING (one CSV file a day) and ORDERS_TABLE in the workers.
Every task can run again: `load` replaces the rows of its day, and `note` appends once for each `txnAppId` and
`txnVersion`. After a conflict with another job nothing was written, and Airflow runs the task again.
"""

import os
from datetime import datetime, timedelta

from airflow.sdk import dag, task

RETRY = {"retries": 3, "retry_delay": timedelta(minutes=1)}


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False)
def orders():
    @task(**RETRY)
    def load(ds: str) -> int:
        import pyarrow as pa
        import pyarrow.csv
        from airflow.sdk.exceptions import AirflowFailException

        from delta_ds import DeltaLog
        from delta_ds.exceptions import InvariantViolationError, SchemaError

        types = {"id": pa.int64(), "country": pa.string(), "amount": pa.float64()}
        convert = pa.csv.ConvertOptions(column_types=types)
        rows = pa.csv.read_csv(f"{os.environ['ORDERS_LANDING']}/{ds}.csv", convert_options=convert)
        rows = rows.append_column("day", pa.array([ds] * rows.num_rows, pa.string()))
        options = {"partitionBy": "day", "replaceWhere": f"day = '{ds}'"}
        try:
            DeltaLog(os.environ["ORDERS_TABLE"]).write(rows, mode="overwrite", options=options)
        except (SchemaError, InvariantViolationError) as error:
            raise AirflowFailException(str(error)) from error  # the file is wrong: no retry
        return rows.num_rows

    @task(**RETRY)
    def note(count: int, ds: str) -> None:
        import pyarrow as pa

        from delta_ds import DeltaLog

        rows = pa.table({"day": [ds], "rows": [count]})
        options = {"txnAppId": f"orders of {ds}", "txnVersion": 1}
        DeltaLog(os.environ["ORDERS_TABLE"] + "_loads").write(rows, options=options)

    @task(**RETRY)
    def maintain() -> None:
        from delta_ds import DeltaLog

        for table in (os.environ["ORDERS_TABLE"], os.environ["ORDERS_TABLE"] + "_loads"):
            log = DeltaLog(table)
            log.optimize()
            log.vacuum()  # of files that no version of the last week needs

    note(load()) >> maintain()


orders()
