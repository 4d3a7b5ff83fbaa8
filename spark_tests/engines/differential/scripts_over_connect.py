"""The SQL scripts of the kit in `../shared/sql`, run by clients of Spark Connect: takes the kit's arguments.

    DELTA_DS_SCRIPT_CLIENT=server python -m spark_tests.engines.differential.scripts_over_connect --only merge

`server`: `pydelta serve --connect`, and a client that registered nothing. `local`: server and client are one process,
`SparkSession.builder.remote("local[2]")`, and the client calls `register`.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[4] / "shared"
KIT = SHARED / "sql"
CLIENT = "DELTA_DS_SCRIPT_CLIENT"
_SECONDS = 180


def main() -> None:
    """Run the kit, whose worker processes are this file."""
    sys.path[:0] = [str(KIT), str(SHARED / "differential")]
    import run
    import session
    import steps

    if os.environ.get(CLIENT) == "server":
        # Spark's own client does not know the default mode by this name of it; one that registered does.
        for operation in (steps.Runner.op_save_as_table, steps.Runner.op_save):
            operation.__defaults__ = tuple(
                "error" if v == "errorifexists" else v for v in operation.__defaults__
            )
    session.make = lambda _, root, catalog, conf: _session(session.JVM, Path(root), catalog, conf)
    run.__file__ = __file__
    run.main()


def _session(jvm: str, root: Path, catalog: str, conf: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**_settings(jvm, root, catalog), **conf}
    if os.environ[CLIENT] == "server":
        return SparkSession.builder.remote(_served(root, settings)).getOrCreate()
    import delta_ds

    builder: SparkSession.Builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    # So that the server takes a free port, where it always has the same one.
    os.environ["SPARK_TESTING"] = "1"
    spark = builder.getOrCreate()
    delta_ds.register(spark)
    return spark


def _served(root: Path, settings: dict[str, str]) -> str:
    command = [sys.executable, "-m", "delta_ds", "serve", "--connect", "--port", "0"]
    command += ["--conf", "spark.master=local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    with open(root / "server.log", "a") as log:
        server = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=log, text=True)
    assert server.stdout is not None
    started = server.stdout.readline()
    assert started.startswith("serving sc://"), (root / "server.log").read_text()[-4000:]

    def end() -> None:
        server.send_signal(signal.SIGTERM)
        server.wait(_SECONDS)

    atexit.register(end)
    return started.split()[1]


def _settings(jvm: str, root: Path, catalog: str) -> dict[str, str]:
    """As the kit's own sessions have them: tables are tiny, and what takes time is compiling."""
    settings = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.driver.extraJavaOptions": f"{jvm} -Dderby.stream.error.file={root / 'derby.log'}",
    }
    if catalog == "hive":
        settings["spark.sql.catalogImplementation"] = "hive"
        database = f"jdbc:derby:;databaseName={root / 'metastore_db'};create=true"
        settings["spark.hadoop.javax.jdo.option.ConnectionURL"] = database
    return settings


if __name__ == "__main__":
    main()
