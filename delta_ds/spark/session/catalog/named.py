"""Catalogs beside the session's: tables that a commit coordinator knows by their names, or that lie in one folder.

`spark.pydelta.catalog.<name>.type` and its like name them, or the settings that users of Unity Catalog's own connector
have: `spark.sql.catalog.<name>=io.unitycatalog.spark.UCSingleCatalog`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.catalog import (
    CATALOG_FORMAT,
    CATALOG_SETTING_MISSING,
    INVALID_CATALOG_SETTING,
    UNKNOWN_CATALOG_SETTING,
)
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.storage.coordination.coordinator import COORDINATORS
from delta_ds.spark.base.kinds.session_facts import all_settings
from delta_ds.spark.session.catalog.coordinated import SQLITE, UNITY, NamedCatalog
from delta_ds.spark.session.catalog.folders import FolderCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOGS_PREFIX = "spark.pydelta.catalog."
SPARK_PREFIX = "spark.sql.catalog."
NAMED_CLASS = "pydelta.NamedTables"
UNITY_CLASS = "io.unitycatalog.spark.UCSingleCatalog"
FOLDER = "folder"
_TYPE = "type"
_KEYS = (_TYPE, "uri", "token", "catalog")
_OF_FOLDERS = (_TYPE, "uri")
# Of Unity Catalog's own connector: what means the same here, and what is done here anyway.
_OF_CONNECTOR = {"uri": "uri", "token": "token", "auth.token": "token"}
_DONE_ANYWAY = frozenset({"renewcredential.enabled", "credscopedfs.enabled", "warehouse"})


def named_catalogs(spark: SparkSession) -> dict[str, NamedCatalog]:
    """The catalogs that the settings of a classic session name, by name.

    Raises
    ------
    InvalidOptionError
        A setting that there is not, or a value that does not fit.
    """
    settings = _settings(spark)
    by_name: dict[str, dict[str, str]] = {}
    for setting, text in settings.items():
        name, _, key = setting.removeprefix(CATALOGS_PREFIX).partition(".")
        if setting.startswith(CATALOGS_PREFIX) and key:
            by_name.setdefault(name, {})[_known(setting, key)] = text
    for setting, text in settings.items():
        name = setting.removeprefix(SPARK_PREFIX)
        is_theirs = text == UNITY_CLASS or f"{CATALOGS_PREFIX}{name}.{_TYPE}" not in settings
        if (
            setting.startswith(SPARK_PREFIX)
            and "." not in name
            and is_theirs
            and _is_of_unity(spark, name, text)
        ):
            by_name.setdefault(name, {}).update(_of_connector(name, settings))
    return {name: _catalog(spark, name, keys) for name, keys in by_name.items()}


def named_catalog(spark: SparkSession, name: str) -> NamedCatalog:
    """One of them, as the settings are now."""
    catalog = named_catalogs(spark).get(name)
    if catalog is None:
        raise CATALOG_SETTING_MISSING(setting=f"{CATALOGS_PREFIX}{name}.{_TYPE}", catalog=name)
    return catalog


def _settings(spark: SparkSession) -> dict[str, str]:
    prefixes = (CATALOGS_PREFIX, SPARK_PREFIX)
    return {name: text or "" for name, text in all_settings(spark).items() if name.startswith(prefixes)}


def _is_of_unity(spark: SparkSession, name: str, text: str) -> bool:
    """Whether a catalog is set to the class of Unity Catalog's connector, whose place is taken here."""
    return name != "spark_catalog" and text in (UNITY_CLASS, NAMED_CLASS) and _lacks_connector(spark)


def _lacks_connector(spark: SparkSession) -> bool:
    from py4j.protocol import Py4JJavaError

    assert spark._jvm is not None
    try:
        spark._jvm.org.apache.spark.util.Utils.classForName(UNITY_CLASS, False, False)
    except Py4JJavaError:
        return True
    return False


def _of_connector(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    keys = {_TYPE: UNITY}
    for setting, text in settings.items():
        key = setting.removeprefix(f"{SPARK_PREFIX}{name}.")
        if key == setting or key.lower() in _DONE_ANYWAY:
            continue
        if key == "auth.type" and text.lower() == "static":
            continue
        if key not in _OF_CONNECTOR:
            raise UNKNOWN_CATALOG_SETTING(
                setting=setting, known=[f"{SPARK_PREFIX}{name}.{one}" for one in _OF_CONNECTOR], hint=""
            )
        keys[_OF_CONNECTOR[key]] = text
    return keys


def _known(setting: str, key: str) -> str:
    if key in _KEYS:
        return key
    near = difflib.get_close_matches(key.lower(), _KEYS, n=1)
    prefix = setting.removesuffix(key)
    raise UNKNOWN_CATALOG_SETTING(
        setting=setting,
        known=[prefix + one for one in _KEYS],
        hint=f"; did you mean {prefix}{near[0]}?" if near else "",
    )


def _catalog(spark: SparkSession, name: str, keys: Mapping[str, str]) -> NamedCatalog:
    prefix = f"{CATALOGS_PREFIX}{name}."
    for key in (_TYPE, "uri"):
        if not keys.get(key, "").strip():
            raise CATALOG_SETTING_MISSING(setting=prefix + key, catalog=name)
    kind = keys[_TYPE].strip()
    if kind.lower() == FOLDER:
        for key in keys:
            if key not in _OF_FOLDERS:
                known = [prefix + one for one in _OF_FOLDERS]
                raise UNKNOWN_CATALOG_SETTING(setting=prefix + key, known=known, hint="")
        return FolderCatalog(name, kind, keys["uri"].strip(), spark=spark)
    if kind.lower() not in COORDINATORS and ":" not in kind:
        raise INVALID_CATALOG_SETTING(setting=prefix + _TYPE, value=kind, known=[*COORDINATORS, FOLDER])
    uri = keys["uri"].strip()
    if kind.lower() == SQLITE:
        uri = absolute(uri)
    catalog = keys.get("catalog", name if kind.lower() == UNITY else "")
    return NamedCatalog(name, kind, uri, keys.get("token", ""), catalog)


def check_provider(catalog: NamedCatalog, provider: str | None, is_ours: bool, table: str) -> None:
    """Refuse to make a table of another format than Delta.

    Raises
    ------
    UnsupportedOperationError
        `CATALOG_FORMAT`.
    """
    if provider is not None and not is_ours:
        raise CATALOG_FORMAT(table=table, catalog=catalog.name, format=provider)
