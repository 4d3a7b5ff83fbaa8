"""This package brought to executors that lack it: an archive that Python imports from, sent as Spark sends files."""

from __future__ import annotations

import hashlib
import os
import py_compile
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from delta_ds import _version
from delta_ds.conditions.session import EXECUTORS_WITHOUT_PACKAGE, PACKAGE_CANNOT_BE_SHIPPED
from delta_ds.events.spark import PACKAGE_SHIPPED, SHIP_NOT_ENOUGH
from delta_ds.spark.base.kinds.environment import PACKAGE, forget_answers, is_unknown, tasks_problem
from delta_ds.spark.base.kinds.sealed import register_sources_again
from delta_ds.spark.engines.seam.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Spark finds data sources in modules named so; no need where it is not installed as one.
_DISCOVERY = "pyspark_pydelta.py"
_NO_DATE = (1980, 1, 1, 0, 0, 0)
# What is there is whole: nobody sends half an archive.
_writing = threading.Lock()


def bring_package(spark: SparkSession, operation: str, table: str) -> None:
    """See to it that tasks can run this package: to executors that lack it, it is sent.

    Parameters
    ----------
    operation, table
        What needs it, and the table's address, for messages.

    Raises
    ------
    UnsupportedOperationError
        Executors lack more than the package, or it cannot be sent; nothing has happened.
    """
    problem = tasks_problem(spark)
    if problem is None or is_unknown(problem):
        return
    PACKAGE_SHIPPED.log(table=table, reason=problem)
    _, problem = send_package(spark)
    if problem is not None:
        raise EXECUTORS_WITHOUT_PACKAGE(operation=operation, table=table, reason=problem)


def send_package(spark: SparkSession) -> tuple[str, str | None]:
    """Send the package to the Python workers of a session, and to those that come later.

    Returns
    -------
    tuple
        Who has it now, and why tasks cannot run it all the same, see `tasks_problem`; None: they can.
    """
    owners = engine_of(spark).jobs.send(package_archive)
    register_sources_again(spark)
    forget_answers()
    problem = tasks_problem(spark)
    if problem is not None:
        SHIP_NOT_ENOUGH.log(reason=problem)
    return owners, problem


def package_archive(folder: str) -> str:
    """Write the package as an archive that Python imports from, and return its path.

    Its name is that of its contents, as Spark takes one name for one content. Modules are in it as compiled for this
    Python too: each process that Spark starts would do it anew.

    Raises
    ------
    UnsupportedOperationError
        The package of this program consists of other files than a folder or an archive of Python modules.
    """
    package = Path(_version.__file__).parent
    if not package.is_dir():
        return _archive_of(package)
    found = [(str(file.relative_to(package.parent)), file) for file in sorted(package.rglob("*.py"))]
    beside = package.parent / _DISCOVERY
    if beside.is_file():
        found.append((_DISCOVERY, beside))
    digest = hashlib.sha256(b"".join(name.encode() + file.read_bytes() for name, file in found)).hexdigest()[
        :12
    ]
    path = os.path.join(folder, f"{PACKAGE}-{_version.__version__}-{digest}.zip")
    with _writing:
        if os.path.exists(path):
            return path
        with tempfile.TemporaryDirectory(prefix="delta-ds-ship-") as scratch:
            compiled = os.path.join(scratch, "module.pyc")
            made = os.path.join(scratch, "package.zip")
            with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, file in found:
                    _add(archive, name, file.read_bytes())
                    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
                    py_compile.compile(str(file), compiled, name, doraise=True, invalidation_mode=unchecked)
                    _add(archive, f"{name}c", Path(compiled).read_bytes())
            Path(path).write_bytes(Path(made).read_bytes())
    return path


def _archive_of(package: Path) -> str:
    """The archive that this program itself has the package from."""
    for folder in package.parents:
        if folder.is_file() and zipfile.is_zipfile(folder):
            return str(folder)
    raise PACKAGE_CANNOT_BE_SHIPPED(path=str(package))


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _NO_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
