"""Catalogs beside the session's: tables that a commit coordinator knows by their names.

`spark.pydelta.catalog.<name>.type` and its like name them, or the settings that users of Unity Catalog's own connector
have: `spark.sql.catalog.<name>=io.unitycatalog.spark.UCSingleCatalog`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.catalog import (
    CATALOG_FORMAT,
    CATALOG_NAMESPACE,
    CATALOG_SETTING_MISSING,
    INVALID_CATALOG_SETTING,
    UNKNOWN_CATALOG_SETTING,
)
from delta_ds.conditions.coordination import COORDINATOR_TABLE_NOT_FOUND, UNITY_NAMESPACE_NOT_FOUND
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.options.parsing import STORAGE_PREFIX
from delta_ds.kernel.storage.coordination.coordinator import (
    COORDINATORS,
    CommitCoordinator,
    ManagedTable,
    coordinator_for,
)
from delta_ds.kernel.storage.store_options import (
    CATALOG_TABLE,
    COMMIT_COORDINATOR,
    COORDINATOR_TOKEN,
    COORDINATOR_URL,
)
from delta_ds.records import dataclass, field
from delta_ds.spark.base.kinds.settings import all_settings
from delta_ds.spark.base.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOGS_PREFIX = "spark.pydelta.catalog."
SPARK_PREFIX = "spark.sql.catalog."
NAMED_CLASS = "pydelta.NamedTables"
UNITY_CLASS = "io.unitycatalog.spark.UCSingleCatalog"
UNITY, SQLITE = "unity", "sqlite"
_TYPE = "type"
_KEYS = (_TYPE, "uri", "token", "catalog")
# Of Unity Catalog's own connector: what means the same here, and what is done here anyway.
_OF_CONNECTOR = {"uri": "uri", "token": "token", "auth.token": "token"}
_DONE_ANYWAY = frozenset({"renewcredential.enabled", "credscopedfs.enabled", "warehouse"})


@dataclass(frozen=True)
class NamedCatalog:
    """A catalog that settings name.

    Attributes
    ----------
    name
        Of Spark: the first part of tables' names.
    kind
        As `commitCoordinator`: `unity`, `sqlite` or a class.
    uri
        Where it is.
    token
        What it knows its user by; never shown.
    catalog
        What stands before the schema in the coordinator's own names; empty where nothing does.
    """

    name: str
    kind: str
    uri: str
    token: str = field(default="", repr=False)
    catalog: str = ""

    def full_name(self, namespace: Sequence[str], table: str) -> str:
        """A table's name as the coordinator knows it.

        Raises
        ------
        InvalidOptionError
            The name has not one schema.
        """
        if len(namespace) != 1:
            raise CATALOG_NAMESPACE(
                table=".".join(map(quoted, (self.name, *namespace, table))), catalog=self.name
            )
        return ".".join(_plain(part) for part in (self.catalog, namespace[0], table) if part)

    def shown(self, namespace: Sequence[str], table: str) -> str:
        """A table's name as Spark shows it."""
        return ".".join(map(_plain, (self.name, *namespace, table)))

    @property
    def store(self) -> dict[str, str]:
        """Storage options that name the coordinator."""
        options = {COMMIT_COORDINATOR: self.kind, COORDINATOR_URL: self.uri}
        return {**options, COORDINATOR_TOKEN: self.token} if self.token else options

    @property
    def coordinator(self) -> CommitCoordinator:
        """Who knows the tables."""
        return coordinator_for(self.store)

    def options(self, full_name: str, table: ManagedTable) -> dict[str, str]:
        """The options of a read or write of a table."""
        store = {**self.store, CATALOG_TABLE: full_name, **table.open_with}
        return {
            "path": table.location.removeprefix("file://"),
            **{f"{STORAGE_PREFIX}{name}": text for name, text in store.items()},
        }

    def find(self, namespace: Sequence[str], table: str) -> ManagedTable | None:
        """A table; None where there is none of the name."""
        if self.kind.lower() == SQLITE and not os.path.exists(self.uri):
            return None  # it is made with its first table
        try:
            return self.coordinator.resolve(self.full_name(namespace, table))
        except DeltaError as error:
            if error.condition in (COORDINATOR_TABLE_NOT_FOUND.name, UNITY_NAMESPACE_NOT_FOUND.name):
                return None
            raise


def place_options(options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The path, and the options of the store, among those of a read or write."""
    store = dict(options)
    return store.pop("path"), store


def _plain(part: str) -> str:
    return part if part.isascii() and part.replace("_", "a").isalnum() else quoted(part)


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
    return {name: _catalog(name, keys) for name, keys in by_name.items()}


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


def _catalog(name: str, keys: Mapping[str, str]) -> NamedCatalog:
    prefix = f"{CATALOGS_PREFIX}{name}."
    for key in (_TYPE, "uri"):
        if not keys.get(key, "").strip():
            raise CATALOG_SETTING_MISSING(setting=prefix + key, catalog=name)
    kind = keys[_TYPE].strip()
    if kind.lower() not in COORDINATORS and ":" not in kind:
        raise INVALID_CATALOG_SETTING(setting=prefix + _TYPE, value=kind, known=[*COORDINATORS])
    uri = keys["uri"].strip()
    if kind.lower() == SQLITE:
        uri = os.path.abspath(uri)
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


def schemas_of(catalog: NamedCatalog) -> list[str]:
    """The names of the schemas that a catalog has tables in, or knows."""
    coordinator: Any = catalog.coordinator
    if catalog.kind.lower() == SQLITE and not os.path.exists(catalog.uri):
        return []
    if catalog.kind.lower() == UNITY:
        return list(coordinator.schemas(catalog.catalog))
    return sorted({parts[-2] for parts in _names(catalog, coordinator) if len(parts) > 1})


def tables_of(catalog: NamedCatalog, schema: str) -> list[str]:
    """The names of a schema's tables, without those of schema and catalog."""
    coordinator: Any = catalog.coordinator
    if catalog.kind.lower() == UNITY:
        from delta_ds.kernel.transaction.unity.api import Name

        return [Name.of(one.name).table for one in coordinator.tables_in(catalog.catalog, schema)]
    return [parts[-1] for parts in _names(catalog, coordinator) if len(parts) > 1 and parts[-2] == schema]


def _names(catalog: NamedCatalog, coordinator: CommitCoordinator) -> list[list[str]]:
    names = [table.name.split(".") for table in coordinator.all_tables()]
    return [parts for parts in names if not catalog.catalog or parts[0] == catalog.catalog]
