"""What a session has set: of delta-spark, with a warning for what has no effect, and of the store, `fs.*`.

The settings: `kernel/format/options/settings.py`, `ignored_settings.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_ds.events.spark import SETTING_WITHOUT_EFFECT
from delta_ds.kernel.format.options.ignored_settings import MACHINERY, SETTINGS
from delta_ds.kernel.format.options.parsing import is_of_store, storage_value, store_name
from delta_ds.kernel.format.options.settings import (
    CONFLICT_DETECTION,
    DEFAULTS_PREFIX,
    PROPERTY_DEFAULTS,
    SETTING_PREFIX,
    is_default,
)
from delta_ds.kernel.format.properties import PREFIX, PROPERTIES
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.table_names import path_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject


_BY_NAME = {setting.full_name: setting for setting in (*SETTINGS, *MACHINERY) if setting != PROPERTY_DEFAULTS}
# What each session has been told, so that it is told once.
_warned: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def session_settings(
    spark: SparkSession | None, settings: Mapping[str, str | None] | None = None
) -> dict[str, str]:
    """All settings of delta-spark that a session has, and what writes need of ours; those without effect are told of.

    Each is told of once. One question to the JVM or the server; none without a session, or with `settings`, which are
    all that the session has.
    """
    if spark is None:
        return {}
    found = {
        name: text
        for name, text in (all_settings(spark) if settings is None else settings).items()
        if name.startswith((SETTING_PREFIX, CONFLICT_DETECTION)) and text is not None
    }
    warned = _warned.setdefault(spark, set())
    for name, why in without_effect(found).items():
        if name not in warned:
            warned.add(name)
            SETTING_WITHOUT_EFFECT.log(name=name, reason=why)
    return found


def without_effect(settings: Mapping[str, str]) -> dict[str, str]:
    """Why settings have no effect, by name; not those set to what holds anyway."""
    out: dict[str, str] = {}
    for name, text in sorted(settings.items()):
        if not name.startswith(SETTING_PREFIX):
            continue
        known = _BY_NAME.get(name)
        if known is None:
            if not is_default(name):
                out[name] = f"it has no effect here{_nearest(name)}"
        elif not known.honoured and text.strip().lower() != str(known.default).lower():
            out[name] = known.meaning
    return out


def _nearest(name: str) -> str:
    import difflib

    # Without the prefix, which would make any two names alike.
    prefix = DEFAULTS_PREFIX if name.startswith(DEFAULTS_PREFIX) else SETTING_PREFIX
    if prefix == DEFAULTS_PREFIX:
        known = [key[len(PREFIX) :] for key in PROPERTIES]
    else:
        known = [setting.name for setting in _BY_NAME.values() if setting.honoured]
    by_lower = {key.lower(): key for key in known}
    near = difflib.get_close_matches(name[len(prefix) :].lower(), by_lower, 1, cutoff=0.85)
    return f"; did you mean {prefix}{by_lower[near[0]]}?" if near else ""


def all_settings(spark: SparkSession) -> Mapping[str, str | None]:
    """All settings of a session: one question to the JVM or the server."""
    return dict(spark.conf.getAll) if is_connect(spark) else texts_of(spark.conf._jconf)


def texts_of(configuration: JavaObject) -> dict[str, str | None]:
    """All settings of a session of the JVM, by its `RuntimeConfig`."""
    # In one text: a map of Scala would be asked for its entries one by one.
    entry, value = "\0\1", " -> "
    text = str(configuration.getAll().mkString(entry))
    return {name: setting for name, _, setting in (pair.partition(value) for pair in text.split(entry))}


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
