"""`FolderCatalog`: a folder as a catalog, of any file system that Spark reaches: namespaces are folders in it.

A table `a.b.t` is the folder `a/b/t`, whoever has written it: what has a version in its log is a table, any other
folder a namespace. Nothing in the folder of a table has a name, and no table takes the folder of a namespace that holds
anything: all in the folder of a table is the table's, and VACUUM and DROP delete it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.catalog import (
    CATALOG_CANNOT,
    CATALOG_NAME,
    CATALOG_NAMESPACE,
    CATALOG_SCHEMA_NOT_FOUND,
)
from delta_ds.conditions.commands import CREATE_TABLE_OVER_FILES
from delta_ds.conditions.session import TABLE_NAME_ALREADY_EXISTS
from delta_ds.kernel.log.filenames import LOG_DIRECTORY, names_version
from delta_ds.kernel.storage.coordination.coordinator import ManagedTable
from delta_ds.records import dataclass, field
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.coordinated import NamedCatalog
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
