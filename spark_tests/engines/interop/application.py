"""An application of Spark in a process of its own, with this package or with delta-spark, that answers statements.

Its program is this module: a line of JSON in is a statement, a line out is the answer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ANSWER = "ANSWER "
# An application that hangs is ended, and with it the test.
_SECONDS = 600


class Application:
    """An application that goes on until the end of the block.

    Parameters
    ----------
    folder
        Of the warehouse, which applications share.
    ours
        Whether it has this package; else delta-spark.
    settings
        Of the session, beside those of a small machine.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], *, ours: bool) -> None:
        told = {
            "ours": ours,
            "settings": {
                "spark.ui.enabled": "false",
                "spark.driver.memory": "1g",
                "spark.sql.shuffle.partitions": "1",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                **settings,
            },
        }
        self._log = folder / f"{'ours' if ours else 'theirs'}.log"
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(told)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": _ROOT},
            )  # fmt: skip

        self._end = threading.Timer(_SECONDS, self._process.kill)

    def __enter__(self) -> Application:
        self._end.start()
        self._answer()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._end.cancel()

    def sql(self, statement: str) -> list[list[str]]:
        """The rows of a statement, as texts."""
        answer: list[list[str]] = self._ask("sql", statement)
        return answer

    def make_metastore(self) -> None:
        """Make the tables of a metastore in a new database: Hive makes them while it writes, and waits for itself."""
        self._ask("make_metastore", "")

    def _ask(self, what: str, text: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, text]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                answer = json.loads(line.removeprefix(_ANSWER))
                assert "error" not in answer, answer["error"]
                return answer["answer"]
        raise AssertionError(self._log.read_text()[-4000:])


_MODEL = re.compile(r"org/apache/hadoop/hive/metastore/model/M\w+\.class")
_ROOT = str(Path(__file__).resolve().parents[3])


# --- the application


def _serve(told: dict[str, Any]) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").enableHiveSupport()
    for name, text in told["settings"].items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if told["ours"]:
        import delta_ds

        delta_ds.register(spark)
    _say({"answer": None})
    for line in sys.stdin:
        what, text = json.loads(line)
        try:
            _say({"answer": _ANSWERS[what](spark, text)})
        except Exception as error:
            _say({"error": f"{text}: {error}"})
    spark.stop()


def _say(answer: dict[str, Any]) -> None:
    print(_ANSWER + json.dumps(answer), flush=True)


def _sql(spark: Any, statement: str) -> list[list[str]]:
    return [[str(value) for value in row] for row in spark.sql(statement).collect()]


def _make_metastore(spark: Any, _: str) -> None:
    jvm = spark._jvm
    store = jvm.org.apache.hadoop.hive.metastore.ObjectStore()
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf(spark._jsc.hadoopConfiguration(), store.getClass())
    store.setConf(conf)
    place = store.getClass().getProtectionDomain().getCodeSource().getLocation().getPath()
    with zipfile.ZipFile(place) as jar:
        models = [name[:-6].replace("/", ".") for name in jar.namelist() if _MODEL.fullmatch(name)]
    assert models
    manager = store.getPersistenceManager()
    for model in map(jvm.java.lang.Class.forName, models):
        # Others are parts of these, without a table of their own.
        if _has_table(manager, model):
            manager.newQuery(model).execute()


def _has_table(manager: Any, model: Any) -> bool:
    of_class = manager.getPersistenceManagerFactory().getNucleusContext().getMetaDataManager()
    described = of_class.getMetaDataForClass(model, manager.getExecutionContext().getClassLoaderResolver())
    return described is not None and not described.isEmbeddedOnly()


_ANSWERS = {"make_metastore": _make_metastore, "sql": _sql}

if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
