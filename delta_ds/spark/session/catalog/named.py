"""Catalogs beside the session's: tables that a commit coordinator knows by their names, or that lie in one folder.

`spark.pydelta.catalog.<name>.type` and its like name them, or the settings that users of Unity Catalog's own connector
have: `spark.sql.catalog.<name>=io.unitycatalog.spark.UCSingleCatalog`.

In a folder, of any file system that Spark reaches, a table `a.b.t` is the folder `a/b/t`, whoever has written it: what
has a version in its log is a table, any other folder a namespace. Nothing in the folder of a table has a name, and no
table takes the folder of a namespace that holds anything: all in the folder of a table is the table's, and VACUUM and
DROP delete it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.catalog import (
    CATALOG_CANNOT,
    CATALOG_FORMAT,
    CATALOG_NAME,
    CATALOG_NAMESPACE,
    CATALOG_SCHEMA_NOT_FOUND,
    CATALOG_SETTING_MISSING,
    INVALID_CATALOG_SETTING,
    UNKNOWN_CATALOG_SETTING,
)
from delta_ds.conditions.commands import CREATE_TABLE_OVER_FILES
from delta_ds.conditions.session import TABLE_NAME_ALREADY_EXISTS
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.log.filenames import LOG_DIRECTORY, names_version
from delta_ds.kernel.storage.coordination.coordinator import COORDINATORS, ManagedTable
from delta_ds.records import dataclass, field
from delta_ds.spark.base.kinds.session_facts import all_settings
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.coordinated import SQLITE, UNITY, NamedCatalog
from delta_ds.spark.session.catalog.entries import address_of, check_address, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

# What a file system or an engine takes for something else than a folder of data.
_NO_NAME = re.compile(r"^[_.]|[/\\\\:\x00-\x1f]|^$")


@dataclass(frozen=True)
class FolderCatalog(NamedCatalog):
    """A catalog that is a folder, `uri`.

    Attributes
    ----------
    spark
        The session, whose settings open the file system.
    """

    spark: SparkSession | None = field(default=None, repr=False, compare=False)

    def describe(self) -> str:
        """See above."""
        return f"the folder {self.uri}"

    def full_name(self, namespace: Sequence[str], table: str) -> str:
        """See above; there is no other name than Spark's."""
        if not namespace:
            raise CATALOG_NAMESPACE(table=f"{quoted(self.name)}.{quoted(table)}", catalog=self.name)
        return self.shown(namespace, table)

    def options(self, full_name: str, table: ManagedTable) -> dict[str, str]:
        """The options of a read or write of a table: its place, as its folder decides about commits."""
        return {"path": local_path(table.location)}

    # --- tables

    def find(self, namespace: Sequence[str], table: str) -> ManagedTable | None:
        """See above."""
        name = self.full_name(namespace, table)
        parts = [*namespace, table]
        if any(map(_NO_NAME.search, parts)) or self._table_among(parts) != parts:
            return None
        return self._table(name, self._path(*parts))

    def begin(self, namespace: Sequence[str], table: str, location: str | None) -> ManagedTable:
        """A new table, which has no version yet.

        Raises
        ------
        NotADeltaTableError
            `SCHEMA_NOT_FOUND`.
        InvalidOptionError
            `CATALOG_NAME`: the name cannot be that of a folder.
        UnsupportedOperationError
            `CATALOG_CANNOT`: it is to lie elsewhere.
        TableExistsError
            `DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`: the name is that of a namespace which holds something.
        """
        name = self.full_name(namespace, table)
        self._check_names([table])
        if location is not None:
            raise CATALOG_CANNOT(what="LOCATION", catalog=self.name, coordinator=self.describe())
        if not self.has_namespace(namespace):
            raise CATALOG_SCHEMA_NOT_FOUND(schemaName=self._spelled([self.name, *namespace]))
        begun = self._table(name, self._path(*namespace, table))
        # REPLACE of a path may take over what lies there; here it is a namespace, whose tables would become files of
        # the new one.
        held = self._first_in(namespace, table)
        if held is not None:
            place = local_path(begun.location)
            raise CREATE_TABLE_OVER_FILES(tableId=place, tableLocation=place, file=held)
        return begun

    def _first_in(self, namespace: Sequence[str], table: str) -> str | None:
        """What a folder holds, but for a log without versions; None: nothing, or there is no folder."""
        files, path = self._files, self._path(*namespace, table)
        held = [str(one.getPath().getName()) for one in files.listStatus(path)] if files.exists(path) else []
        return min((name for name in held if name != LOG_DIRECTORY), default=None)

    def drop(self, namespace: Sequence[str], table: str) -> bool:
        """Delete a table with its files; whether there was one."""
        if self.find(namespace, table) is None:
            return False
        return bool(self._files.delete(self._path(*namespace, table), True))

    def tables(self, namespace: Sequence[str]) -> list[str]:
        """See above."""
        return sorted(self._folders(namespace, are_tables=True))

    # --- namespaces

    def namespaces(self, above: Sequence[str]) -> list[str]:
        """See above."""
        return sorted(self._folders(above, are_tables=False))

    def has_namespace(self, namespace: Sequence[str]) -> bool:
        """See above."""
        if any(map(_NO_NAME.search, namespace)) or self._table_among(namespace) is not None:
            return False
        path = self._path(*namespace)
        return bool(self._files.exists(path) and self._files.getFileStatus(path).isDirectory())

    def create_namespace(self, namespace: Sequence[str], properties: Mapping[str, str]) -> None:
        """See above."""
        self._check_properties(properties)
        self._check_names(namespace)
        table = self._table_among(namespace)
        if table is not None:
            raise TABLE_NAME_ALREADY_EXISTS(relationName=self._spelled([self.name, *table]))
        self._files.mkdirs(self._path(*namespace))

    @property
    def _keeps_namespaces(self) -> bool:
        return True

    def _hides_something(self, namespace: Sequence[str]) -> bool:
        return self._holds_nameless(self._files, self._path(*namespace))

    def _holds_nameless(self, files: JavaObject, folder: JavaObject) -> bool:
        """Whether a file or folder is below one that is neither of a table nor a namespace."""
        for one in files.listStatus(folder):
            path = one.getPath()
            if self._is_empty_log(files, path):
                continue
            if not one.isDirectory() or _NO_NAME.search(path.getName()):
                return True
            if not self._is_table(files, path) and self._holds_nameless(files, path):
                return True
        return False

    def _let_go(self, namespace: Sequence[str]) -> bool:
        files, path = self._files, self._path(*namespace)
        for one in files.listStatus(path):
            if self._is_empty_log(files, one.getPath()):
                files.delete(one.getPath(), False)
        # What has come to be since it was looked at stays, and the namespace with it.
        return len(files.listStatus(path)) == 0 and bool(files.delete(path, False))

    def _table_among(self, parts: Sequence[str]) -> list[str] | None:
        """The first table that a name would be in, or be itself."""
        files, path = self._files, self._path()
        for depth, part in enumerate(parts, 1):
            path = self._in(path, part)
            if self._is_table(files, path):
                return list(parts[:depth])
        return None

    def _is_table(self, files: JavaObject, folder: JavaObject) -> bool:
        log = self._in(folder, LOG_DIRECTORY)
        if not files.exists(log):
            return False
        found = files.listStatusIterator(log)
        while found.hasNext():
            if names_version(str(found.next().getPath().getName())):
                return True
        return False

    def _is_empty_log(self, files: JavaObject, path: JavaObject) -> bool:
        """Whether a path is what a creation that failed leaves: a log without any file."""
        return path.getName() == LOG_DIRECTORY and len(files.listStatus(path)) == 0

    # --- the file system

    @property
    def _jvm(self) -> Jvm:
        assert self.spark is not None
        return Jvm.of(self.spark)

    @property
    def _files(self) -> JavaValue:
        assert self.spark is not None
        check_address(self.uri)
        return self._jvm.Path(self.uri).getFileSystem(
            self.spark._jsparkSession.sessionState().newHadoopConf()
        )

    def _path(self, *parts: str) -> JavaValue:
        return self._in(self._files.makeQualified(self._jvm.Path(self.uri)), *parts)

    def _in(self, path: JavaObject, *parts: str) -> JavaValue:
        for part in parts:
            path = self._jvm.Path(path, part)
        return path

    def _table(self, name: str, path: JavaObject) -> ManagedTable:
        return ManagedTable(name, name, address_of(path.toUri()))

    def _folders(self, namespace: Sequence[str], *, are_tables: bool) -> list[str]:
        if namespace and not self.has_namespace(namespace):
            return []
        files, path = self._files, self._path(*namespace)
        if not files.exists(path):
            return []  # the folder of the catalog is made with its first namespace
        found = [one.getPath() for one in files.listStatus(path) if one.isDirectory()]
        return [
            str(one.getName())
            for one in found
            if not _NO_NAME.search(one.getName()) and self._is_table(files, one) == are_tables
        ]

    def _check_names(self, parts: Sequence[str]) -> None:
        for part in parts:
            if _NO_NAME.search(part):
                raise CATALOG_NAME(name=part, catalog=self.name, folder=self.uri)


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
