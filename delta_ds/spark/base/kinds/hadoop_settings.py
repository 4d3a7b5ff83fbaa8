"""The `fs.*` settings of a session as storage options of the kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.options.parsing import is_of_store, storage_value, store_name
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.table_names import path_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject

# Where Hadoop's defaults come from; they say nothing about what the user wants.
_DEFAULTS = "-default.xml"
# Where Hadoop's key stores are named; S3A looks into its own first.
_KEY_STORES = ("fs.s3a.security.credential.provider.path", "hadoop.security.credential.provider.path")


def with_session_settings(spark: SparkSession | None, options: Mapping[str, str]) -> dict[str, str]:
    """Options with what the session says of the store now.

    What is set by `spark.conf.set`, on `hadoopConfiguration` or for the application counts, and is asked for each time:
    credentials change. Options that are given win: each over its own setting, and credentials, in whichever words, over
    all credentials of the session.

    Parameters
    ----------
    spark
        The session; None, or one of Spark Connect, has nothing to say here: the server has its own.
    options
        As given to a reader, a writer or `DeltaTable.forPath`, `path` among them. Of a table on a local disk nothing
        is asked.

    Raises
    ------
    InvalidOptionError
        The session says of the store what has no counterpart, and would let Spark ask as another user or write other
        bytes.
    """
    path = path_option(options) or ""
    remote = has_scheme(path) and not path.lower().startswith("file:")
    if spark is None or is_connect(spark) or not remote:
        return dict(options)
    from delta_ds.kernel.storage.settings.translate import names_in_key_stores, settings_of_session

    conf = spark._jsparkSession.sessionState().newHadoopConf()
    given = {
        store_name(name): storage_value(name, text) for name, text in options.items() if is_of_store(name)
    }
    address = parse_address(path)
    properties = _properties(conf, spark._jvm)
    properties.update(_from_key_stores(conf, spark._jvm, properties, names_in_key_stores(address)))
    found = settings_of_session(properties, address, given, lambda name: _is_default(conf, name))
    return {**found, **options}


def _properties(conf: JavaObject, jvm: Any) -> dict[str, str]:
    """All properties in one message; Hadoop's own way to JSON leaves out secrets."""
    text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(conf.getPropsWithPrefix(""))
    return {str(name): str(value) for name, value in json.loads(text).items()}


def _from_key_stores(
    conf: JavaObject, jvm: Any, properties: Mapping[str, str], names: Sequence[str]
) -> dict[str, str]:
    """Secrets that Hadoop has in key stores, and not as settings."""
    stores = [properties[name] for name in _KEY_STORES if properties.get(name)]
    if not stores:
        return {}
    looked_in = jvm.org.apache.hadoop.conf.Configuration(conf)
    looked_in.set(_KEY_STORES[-1], ",".join(stores))
    secrets = {name: looked_in.getPassword(name) for name in names if name not in properties}
    return {name: "".join(secret) for name, secret in secrets.items() if secret is not None}


def _is_default(conf: JavaObject, name: str) -> bool:
    sources = conf.getPropertySources(name)
    return sources is not None and len(sources) > 0 and str(sources[len(sources) - 1]).endswith(_DEFAULTS)
