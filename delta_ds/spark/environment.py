"""Missing requirements of a session (workers' Python, formats), found by `register` and named in errors.

Spark runs the data source and tasks in Python processes of its own, with the `python3` of PATH unless PYSPARK_PYTHON
names another: not always the Python of the program.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.session import DATA_SOURCE_NOT_FOUND, PYTHON_WORKERS_WITHOUT_PACKAGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.spark.engine import is_connect

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# By the names that they are imported under.
_NEEDED = ("delta_ds", "pyarrow", "numpy", "fsspec", "sqlglot", "pyroaring")
_SECONDS = 30
_LOOK = (
    "import importlib.util, json, sys; "
    "print(json.dumps([list(sys.version_info[:2]), [n for n in sys.argv[1:] if importlib.util.find_spec(n) is None]]))"
)
_PROBE = f"""
def probe(numbers):
    from importlib.util import find_spec
    return [all(find_spec(name) is not None for name in {_NEEDED!r})]
"""
_MISSING = re.compile(rf"ModuleNotFoundError: No module named '(?P<name>{'|'.join(_NEEDED)})\b")
_NO_DELTA = re.compile(r"\[DATA_SOURCE_NOT_FOUND\] [^.]*: `?delta`?\. ")


def foreign_workers(spark: SparkSession) -> str | None:
    """Why the Python workers of a classic session cannot run this package; None: they can, as far as is seen here.

    Looks at the machine of the driver only, and starts no job. Where workers have the Python of this process, there is
    nothing to look at.
    """
    python = str(spark.sparkContext.pythonExec)
    found = shutil.which(python)
    if found == sys.executable:
        return None
    problem = _find_problem(found) if found is not None else "which is not there"
    return None if problem is None else f"Spark's Python workers run {python!r}, {problem}; {_advice()}"


def workers_have_package(spark: SparkSession) -> bool:
    """Whether tasks can run this package; on a cluster one small job asks the executors, once an application."""
    if is_connect(spark):
        return True  # the server's, where the package does its work
    if foreign_workers(spark) is not None:
        return False
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return True
    return _ask_executors(context, context.applicationId)


@functools.lru_cache(maxsize=8)
def _ask_executors(context: SparkContext, application: str) -> bool:
    names: dict[str, Any] = {}
    # A function of this package would need the package to be unpickled.
    exec(_PROBE, names)  # noqa: S102 - a constant
    tasks = context.defaultParallelism
    return all(context.parallelize(range(tasks), tasks).mapPartitions(names["probe"]).collect())


@functools.cache
def _find_problem(python: str) -> str | None:
    try:
        done = subprocess.run(
            [python, "-c", _LOOK, *_NEEDED], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        version, missing = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"which cannot be asked what it has ({type(error).__name__})"
    if tuple(version) != sys.version_info[:2]:
        return f"which is Python {'.'.join(map(str, version))}, and this is {sys.version_info[0]}.{sys.version_info[1]}"
    return f"which lacks {', '.join(missing)}" if missing else None


def _advice() -> str:
    return f"set PYSPARK_PYTHON={sys.executable} before the session is made"


def explain_failure(exception: BaseException) -> UnsupportedOperationError | None:
    """The missing requirement that caused a failure; None for another cause."""

    text = str(exception)
    missing = _MISSING.search(text)
    # What workers lack for somebody else's functions is none of our business.
    if missing is not None and "delta_ds" in text:
        return PYTHON_WORKERS_WITHOUT_PACKAGE(module=missing["name"], way_out=_advice())
    if _NO_DELTA.search(text.partition("\n")[0]):
        return DATA_SOURCE_NOT_FOUND(provider="delta")
    return None
