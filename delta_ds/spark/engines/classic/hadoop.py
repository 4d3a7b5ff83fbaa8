"""The folder of a table as the JVM opens it, by Hadoop's file systems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.storage.store_options import is_hadoop_setting
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.large_tables import is_large

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

_TIME_TRAVEL = re.compile(r"@([vV][0-9]{1,19}|[0-9]{17})$")


# What was found of a table's folder, once a JVM: what Hadoop has opened it keeps open, by the same settings.
_roots: WeakKeyDictionary[JavaObject, dict[str, str]] = WeakKeyDictionary()
# Spellings of one store, of which a Hadoop mostly knows one only.
_S3 = re.compile(r"^s3[an]?://", re.IGNORECASE)


def hadoop_root(jvm: Jvm, options: Mapping[str, str], path: str, *, new: bool = False) -> str | None:
    """The table's folder as Hadoop opens it; None for a local one.

    Parameters
    ----------
    options
        Of the read or write.
    path
        The table as the user names it.
    new
        Whether the table is yet to be made, so that there is no log to look for.

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
    if parse_address(path).userinfo:
        raise NotNative("the address has a login, which is for Python's file system and not for plans")
    root = _TIME_TRAVEL.sub("", path).rstrip("/") + "/"
    known = _roots.setdefault(jvm.gateway, {})
    if root in known:
        return known[root]
    found = _find_root(jvm, root, new)
    if not new:
        known[root] = found
    return found


def _find_root(jvm: Jvm, root: str, new: bool) -> str:
    from py4j.protocol import Py4JError

    def problem(candidate: str) -> str | None:
        try:
            log = jvm.Path(f"{candidate}_delta_log")
            there = file_system(jvm, log).exists(log)
            return None if there or new else "it sees no _delta_log there"
        except Py4JError as error:
            cause = getattr(error, "java_exception", None)
            return str(cause.toString() if cause is not None else error).splitlines()[0]

    problems = []
    for candidate in dict.fromkeys((root, _S3.sub("s3a://", root))):
        found = problem(candidate)
        if found is None:
            return candidate
        problems.append(found)
    raise NotNative(f"Hadoop cannot open {root}: {'; '.join(dict.fromkeys(problems))}")


def as_hadoop_opens(address: str, root: str) -> str:
    """An absolute address of a log by the scheme that Hadoop knows the table's own folder by.

    >>> as_hadoop_opens("s3://bucket/t/a.parquet", "s3a://bucket/clone/")
    's3a://bucket/t/a.parquet'
    """
    scheme = _S3.match(root)
    return address if scheme is None else _S3.sub(scheme[0], address)


def file_system(jvm: Jvm, path: JavaObject) -> JavaValue:
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
