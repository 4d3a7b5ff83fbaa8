"""Missing requirements of a session (workers' Python, formats), found by `register` and named in errors.

Spark runs the data source and tasks in Python processes of its own, with the `python3` of PATH unless PYSPARK_PYTHON
names another: not always the Python of the program, and on a cluster that of other machines.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta_ds._version import __version__
from delta_ds.conditions.session import DATA_SOURCE_NOT_FOUND, PYTHON_WORKERS_WITHOUT_PACKAGE
from delta_ds.events.spark import EXECUTORS_WITHOUT_PACKAGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.records import dataclass
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.kind import is_connect

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject


PACKAGE = "delta_ds"
# By the names that they are imported under.
_NEEDED = (PACKAGE, "pyarrow", "numpy", "fsspec", "sqlglot", "pyroaring")
_SECONDS = 30
_LOOK = (
    "import importlib.util, json, sys; "
    "print(json.dumps([list(sys.version_info[:2]), [n for n in sys.argv[1:] if importlib.util.find_spec(n) is None]]))"
)
_PROBE = f"""
def probe(numbers):
    from importlib.util import find_spec
    missing = [name for name in {_NEEDED!r} if find_spec(name) is None]
    version = None
    if {PACKAGE!r} not in missing:
        # Read, not imported: a worker that is used again would keep what it has imported.
        import os, re
        spec = find_spec({PACKAGE!r})
        text = spec.loader.get_data(os.path.join(os.path.dirname(spec.origin), "_version.py")).decode()
        version = re.search('^__version__ = "(.+?)"', text, re.MULTILINE)[1]
    return [(missing, version)]
"""
_MISSING = re.compile(rf"ModuleNotFoundError: No module named '(?P<name>{'|'.join(_NEEDED)})\b")
# Before a task knows whose it is: what Spark sends for a data source needs it.
_UNPICKLED = re.compile(
    r"in read_command\b.*ModuleNotFoundError: No module named '(?P<name>pyarrow)\b", re.DOTALL
)
_CANCELLED = "[SPARK_JOB_CANCELLED]"
_NOT_ASKED = "executors cannot be asked what they have: "
_NO_DELTA = re.compile(r"\[DATA_SOURCE_NOT_FOUND\] [^.]*: `?delta`?\. ")


# --- the machine of the driver


def foreign_workers(spark: SparkSession) -> str | None:
    """Why the Python workers of a classic session cannot run this package; None: they can, as far as is seen here.

    Looks at the machine of the driver only, and starts no job. Where workers have the Python of this process, there is
    nothing to look at.
    """
    with _exchanged:
        return _problem_of_workers(spark.sparkContext)


def _problem_of_workers(context: SparkContext) -> str | None:
    python = str(context.pythonExec)
    found = shutil.which(python)
    if found == sys.executable:
        return None
    problem = _find_problem(found, _sent_files(context)) if found is not None else "which is not there"
    return None if problem is None else f"Spark's Python workers run {python!r}, {problem}; {_advice()}"


def _sent_files(context: SparkContext) -> tuple[str, ...]:
    """The files that workers import from, as `addPyFile` and `--py-files` have put them on this machine."""
    names: Sequence[str] = getattr(context, "_python_includes", ())
    if not names:
        return ()
    from pyspark import SparkFiles

    root = SparkFiles.getRootDirectory()
    return tuple(os.path.join(root, name) for name in names)


@functools.cache
def _find_problem(python: str, sent: Sequence[str]) -> str | None:
    path = os.pathsep.join([*sent, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path} if path else None
    try:
        done = subprocess.run(
            [python, "-c", _LOOK, *_NEEDED],
            capture_output=True, text=True, timeout=_SECONDS, check=True, env=env,
        )  # fmt: skip
        version, missing = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"which cannot be asked what it has ({type(error).__name__})"
    if tuple(version) != sys.version_info[:2]:
        return f"which is Python {'.'.join(map(str, version))}, and this is {sys.version_info[0]}.{sys.version_info[1]}"
    return f"which lacks {', '.join(missing)}" if missing else None


@contextmanager
def own_python(spark: SparkSession) -> Iterator[None]:
    """Within the block, functions that are made for tasks run in the Python of this program, where that is at hand.

    It is where tasks run on this machine, and nobody has chosen a Python: Spark then takes the `python3` of PATH, which
    is another one where an environment is used that is not activated.
    """
    context = spark.sparkContext
    if not _may_take_own_python(context):
        yield
        return
    # Nobody looks at what workers run while it is another one for a moment.
    with _exchanged:
        chosen = context.pythonExec
        if _problem_of_workers(context) is not None and _has_own_python(context):
            context.pythonExec = sys.executable
        try:
            yield
        finally:
            context.pythonExec = chosen


_exchanged = threading.Lock()


def _may_take_own_python(context: SparkContext) -> bool:
    return _is_local(context) and "PYSPARK_PYTHON" not in os.environ


def _has_own_python(context: SparkContext) -> bool:
    # A program that Python is embedded in has none that could be started.
    return bool(sys.executable) and _find_problem(sys.executable, _sent_files(context)) is None


def _is_local(context: SparkContext) -> bool:
    master = str(context.master)
    return master.startswith("local") and not master.startswith("local-cluster")


def _advice() -> str:
    return f"set PYSPARK_PYTHON={sys.executable} before the session is made"


# --- tasks


@dataclass(frozen=True)
class _Answer:
    """What the executors of an application have said.

    Attributes
    ----------
    executors
        Those that were there to be asked.
    problem
        See `tasks_problem`.
    """

    application: str
    executors: frozenset[str]
    problem: str | None


_asked: list[_Answer] = []


def tasks_problem(spark: SparkSession) -> str | None:
    """Why tasks cannot run this package, in one line; None: they can.

    On a cluster a small job asks the executors, and again when there are others than before. Which of them answer is
    up to Spark: a task that another one gets fails by itself where it cannot import the package, or has another version
    of it (`same_version`).
    """
    if is_connect(spark):
        return None  # the server's, where the package does its work
    context = spark.sparkContext
    if _is_local(context):
        problem = foreign_workers(spark)
        owns = problem is not None and _may_take_own_python(context) and _has_own_python(context)
        return None if owns else problem
    executors = _executors(context)
    for answer in _asked:
        if answer.application == context.applicationId and executors <= answer.executors:
            return answer.problem
    problem = _ask_executors(context, len(executors))
    if problem is not None:
        EXECUTORS_WITHOUT_PACKAGE.log(reason=problem)
    _asked[:] = [_Answer(context.applicationId, executors, problem)]
    return problem


def is_unknown(problem: str) -> bool:
    """Whether executors could not be asked, as where sessions may run no jobs of RDDs: they may have all they need."""
    return problem.startswith(_NOT_ASKED)


def forget_answers() -> None:
    """Ask the executors anew when it next matters."""
    _asked.clear()


def _executors(context: SparkContext) -> frozenset[str]:
    from py4j.protocol import Py4JError

    jsc: JavaObject = context._jsc
    try:
        return frozenset(filter(None, jsc.sc().getExecutorIds().mkString(",").split(",")))
    except Py4JError:  # then one answer has to do for all that come
        return frozenset()


def _ask_executors(context: SparkContext, executors: int) -> str | None:
    names: dict[str, Any] = {}
    # A function of this package would need the package to be unpickled.
    exec(_PROBE, names)  # noqa: S102 - a constant
    tasks = max(context.defaultParallelism, executors)
    try:
        found = context.parallelize(range(tasks), tasks).mapPartitions(names["probe"]).collect()
    except Exception as error:
        if _CANCELLED in str(error):  # by the user, and with it the command; executors have not answered
            raise
        # Whatever else it is: the command does without them, or fails for the same reason in Spark's words.
        return f"{_NOT_ASKED}{_last_line(error)}"
    missing = {name for lacking, _ in found for name in lacking}
    if missing:
        return f"executors lack {', '.join(sorted(missing, key=_NEEDED.index))}: {shipping(missing)}"
    others = {str(version) for _, version in found} - {__version__}
    if others:
        return f"executors have delta-ds {', '.join(sorted(others))}, and this is {__version__}: {shipping({PACKAGE})}"
    return None


def _last_line(error: Exception) -> str:
    """What a task raised, of all that Spark tells around it; else what Spark says first."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raised = [line.strip() for line in lines if re.match(r"\S*(Error|Exception)\b.*: ", line)]
    return redacted(raised[-1] if raised else lines[0])[:500]


def shipping(missing: set[str]) -> str:
    """What to do where executors lack something, as part of a sentence."""
    if missing <= {PACKAGE}:
        return (
            "call delta_ds.ship(spark), give it to spark-submit by --py-files, or install delta-ds on every machine "
            "(docs/clusters.md)"
        )
    return (
        "install delta-ds on every machine, or send an environment with it by --archives (docs/clusters.md)"
    )


def explain_failure(exception: BaseException) -> UnsupportedOperationError | None:
    """The missing requirement that caused a failure; None for another cause."""

    text = str(exception)
    missing = _MISSING.search(text)
    # What workers lack for somebody else's functions is none of our business.
    if missing is None or PACKAGE not in text:
        missing = _UNPICKLED.search(text)
    if missing is not None:
        forget_answers()
        name = missing["name"]
        return PYTHON_WORKERS_WITHOUT_PACKAGE(module=name, shipping=shipping({name}), way_out=_advice())
    if _NO_DELTA.search(text.partition("\n")[0]):
        return DATA_SOURCE_NOT_FOUND(provider="delta")
    return None
