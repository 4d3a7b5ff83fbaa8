"""The folder of a table as the JVM opens it, by Hadoop's file systems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.options.parsing import is_of_store
from delta_ds.kernel.storage.hadoop_options import is_hadoop_setting
from delta_ds.kernel.storage.uri import has_scheme
from delta_ds.spark.large_tables.bound import is_large
from delta_ds.spark.native.jvm import Jvm, NotNative
from delta_ds.spark.session_conf import NATIVE_SCAN_CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.kernel.snapshot import Snapshot

_TIME_TRAVEL = re.compile(r"@([vV][0-9]{1,19}|[0-9]{17})$")


def hadoop_root(jvm: Jvm, options: Mapping[str, str], path: str) -> str | None:
    """The table's folder as Hadoop opens it; None for a local one.

    Raises
    ------
    NotNative
        Spark's JVM cannot open the store: it lacks the file system's classes or the credentials.
    """
    if not has_scheme(path) or path.lower().startswith("file:"):
        return None
    given = [name for name in options if is_of_store(name) and not is_hadoop_setting(name)]
    if given:
        raise NotNative(f"the option {given[0]} is meant for Python's file system, not for Hadoop's")
    return _find_root(jvm, _TIME_TRAVEL.sub("", path).rstrip("/") + "/")


def _find_root(jvm: Jvm, root: str) -> str:
    from py4j.protocol import Py4JError

    def problem(candidate: str) -> str | None:
        try:
            log = jvm.Path(f"{candidate}_delta_log")
            return None if file_system(jvm, log).exists(log) else "it sees no _delta_log there"
        except Py4JError as error:
            cause = getattr(error, "java_exception", None)
            return str(cause.toString() if cause is not None else error).splitlines()[0]

    found = None
    for candidate in (root, re.sub(r"^s3n?://", "s3a://", root)):
        found = problem(candidate)
        if found is None:
            return candidate
    raise NotNative(f"Hadoop cannot open {root}: {found}")


def file_system(jvm: Jvm, path: Any) -> Any:
    """Hadoop's file system of a path, as the session is configured."""
    return path.getFileSystem(jvm.spark._jsparkSession.sessionState().newHadoopConf())


def check_names(spark: SparkSession, snapshot: Snapshot) -> None:
    """Leave tables to the portable path whose files Hadoop cannot open on a local disk.

    It looks for a checksum beside each local file, and takes a colon in its name for a URI's. The files of large
    tables are not known yet: see `check_found_names`.

    Raises
    ------
    NotNative
        A file has such a name.
    """
    if not is_large(spark, snapshot) and _has_colons(snapshot):
        raise NotNative(f"{_COLONS}, which Hadoop cannot open on a local disk")


def check_found_names(snapshot: Snapshot) -> None:
    """Refuse to read files of a large table that Hadoop cannot open on a local disk.

    Raises
    ------
    DeltaError
        A file has such a name.
    """
    if snapshot.storage.address.scheme == "file" and _has_colons(snapshot):
        raise DeltaError(
            f"{_COLONS} of {snapshot.storage.url}, and Spark's own reader cannot open such files on a local disk; "
            f"read the table with {NATIVE_SCAN_CONF}=false"
        )


_COLONS = "the names of data files hold colons"


def _has_colons(snapshot: Snapshot) -> bool:
    import pyarrow.compute as pc

    odd = pc.match_substring_regex(snapshot.live_files().table["path"], r"(:|%3[aA])[^/]*$")
    return bool(pc.any(odd, min_count=0).as_py())


def local_root(snapshot: Snapshot) -> str:
    """The folder of a table on a local disk, as Hadoop names it.

    Raises
    ------
    NotNative
        It is in a store.
    """
    if snapshot.storage.address.scheme != "file":
        raise NotNative(f"{snapshot.storage.url} is not known to Hadoop")
    return f"file:{snapshot.storage.url.rstrip('/')}/"
