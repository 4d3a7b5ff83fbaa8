"""The `fs.*` settings of a session as storage options of the kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.options.parsing import STORAGE_PREFIX
from delta_ds.kernel.storage.hadoop_options import settings_of_store
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.spark.engine import is_connect
from delta_ds.spark.table_names import path_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where Hadoop's defaults come from; they say nothing about what the user wants.
_DEFAULTS = "-default.xml"


def with_session_settings(spark: SparkSession | None, options: Mapping[str, str]) -> dict[str, str]:
    """Options with what the session says of the store now.

    What is set by `spark.conf.set`, on `hadoopConfiguration` or for the application counts, and is asked for each time:
    credentials change. Options that are given win.

    Parameters
    ----------
    spark
        The session; None, or one of Spark Connect, has nothing to say here: the server has its own.
    options
        As given to a reader, a writer or `DeltaTable.forPath`, `path` among them. Of a table on a local disk nothing
        is asked, nor if options are given in the words of Python's file systems.
    """
    path = path_option(options) or ""
    remote = has_scheme(path) and not path.lower().startswith("file:")
    python = any(name.lower().startswith(STORAGE_PREFIX) for name in options)
    if spark is None or is_connect(spark) or not remote or python:
        return dict(options)
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    address = parse_address(path)
    found = settings_of_store(_properties(conf, spark._jvm), address.scheme, address.authority)
    given = settings_of_store(dict(options), address.scheme, address.authority)
    new = {name: value for name, value in found.items() if name not in given and not _is_default(conf, name)}
    return {**new, **options}


def _properties(conf: Any, jvm: Any) -> dict[str, str]:
    """All properties in one message; Hadoop's own way to JSON leaves out secrets."""
    text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(conf.getPropsWithPrefix(""))
    return {str(name): str(value) for name, value in json.loads(text).items()}


def _is_default(conf: Any, name: str) -> bool:
    sources = conf.getPropertySources(name)
    return sources is not None and len(sources) > 0 and str(sources[len(sources) - 1]).endswith(_DEFAULTS)
