"""Unity Catalog: tables whose commits its server ratifies, and others that it knows by name.

Source: Unity Catalog, "Managed Tables Specification" 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from delta_ds.conditions.coordination import (
    COORDINATOR_CANNOT,
    COORDINATOR_FULL,
    COORDINATOR_NEEDS_NAME,
    COORDINATOR_OPTION_MISSING,
    COORDINATOR_TABLE_EXISTS,
    COORDINATOR_TABLE_NOT_FOUND,
    UNITY_CANNOT_PERMIT,
    UNITY_CANNOT_PLACE,
    UNITY_CANNOT_UNIFORM,
    UNITY_TABLE_REPLACED,
)
from delta_ds.exceptions import DeltaError, UncertainWriteError
from delta_ds.kernel.base.environment import UNITY_TOKEN
from delta_ds.kernel.format.properties import (
    CHECKPOINT_POLICY,
    CHECKPOINT_WRITE_STATS_AS_JSON,
    CHECKPOINT_WRITE_STATS_AS_STRUCT,
    ENABLE_DELETION_VECTORS,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    UNIVERSAL_FORMAT_ENABLED_FORMATS,
)
from delta_ds.kernel.storage.coordination.coordinator import (
    CommitCoordinator,
    ManagedTable,
    ProposedCommit,
    RatifiedCommits,
)
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.storage.store_errors import pause
from delta_ds.kernel.storage.store_options import (
    COORDINATOR_TOKEN,
    COORDINATOR_URL,
    STAGED_TABLE,
    store_options,
)
from delta_ds.kernel.transaction.unity.api import Api, Name, Vended, needs_credentials, vended
from delta_ds.kernel.transaction.unity.http import Answer, NoAnswer, Server
from delta_ds.kernel.transaction.unity.updates import MANAGED, table_of, updates_of

_ATTEMPTS = 5
_DROP = "delete".upper()  # of HTTP
# What the catalog wants of the tables whose commits it manages.
_KEPT = frozenset(
    {
        "io.unitycatalog.tableId",
        *(
            wanted.name
            for wanted in (
                CHECKPOINT_POLICY,
                CHECKPOINT_WRITE_STATS_AS_JSON,
                CHECKPOINT_WRITE_STATS_AS_STRUCT,
                ENABLE_DELETION_VECTORS,
                ENABLE_IN_COMMIT_TIMESTAMPS,
            )
        ),
    }
)


class UnityCatalog(CommitCoordinator):
    """The coordinator of a Unity Catalog server, version 0.5.0 or later.

    Parameters
    ----------
    options
        `coordinatorUrl`: the server's address, such as `https://catalog.example.com`. `coordinatorToken`: what it knows
        its user by; without it that of the environment variable `DELTA_DS_UNITY_TOKEN`, or none.
    """

    kind: ClassVar[str] = "unity"
    publishes_version_0: ClassVar[bool] = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        settings = store_options(options)
        url = settings.get(COORDINATOR_URL, "")
        if not url:
            raise COORDINATOR_OPTION_MISSING(
                option=COORDINATOR_URL, what="for the coordinator unity it is the address of the server"
            )
        token = settings.get(COORDINATOR_TOKEN) or UNITY_TOKEN.text()
        self._api = Api(Server(url, token), token)
        self._staged: Mapping[str, Any] = _object(options.get(STAGED_TABLE))

    def describe(self) -> str:
        return self._api.describe()

    # --- tables

    def resolve(self, name: str) -> ManagedTable:
        parts = Name.of(name)
        self._api.settle(parts.catalog, "look up", name)
        answer = self._api.try_get(parts.path, None, "look up", name)
        if answer.error == "NoSuchTableException" and self._staged:
            return self._staged_table(str(parts))
        if answer.status != 200:
            raise self._api.failure(answer, "look up", name)
        metadata = answer.body["metadata"]
        if self._staged and metadata["table-uuid"] != self._staged["id"]:
            raise self._exists(parts)
        location = str(metadata["location"])
        credentials = self._credentials(parts, location)
        return ManagedTable(
            str(parts),
            str(metadata["table-uuid"]),
            location,
            (metadata.get("properties") or {}).get(MANAGED) == "supported",
            storage_options=credentials.options,
            expires_ms=credentials.expires_ms,
        )

    def resolve_location(self, location: str) -> ManagedTable:
        raise COORDINATOR_NEEDS_NAME(option="catalogTable", coordinator=self.describe(), location=location)

    def _credentials(self, name: Name, location: str) -> Vended:
        """Those to write with, else those to read with; the store refuses then what they do not allow."""
        if not needs_credentials(location):
            return Vended()
        path, shown = f"{name.path}/credentials", str(name)
        answer = self._api.try_get(path, {"operation": "READ_WRITE"}, "get credentials for", shown)
        if answer.status == 403:
            answer = self._api.try_get(path, {"operation": "READ"}, "get credentials for", shown)
        if answer.status != 200:
            raise self._api.failure(answer, "get credentials for", shown)
        return vended(answer.body.get("storage-credentials") or (), location)

    def _staged_table(self, name: str) -> ManagedTable:
        """A table that has been begun, and is not registered yet."""
        id, location = self._staged["id"], self._staged["location"]
        credentials = Vended()
        if needs_credentials(location):
            answer = self._api.get(
                f"/delta/v1/staging-tables/{id}/credentials", None, "get credentials for", name
            )
            credentials = vended(answer.get("storage-credentials") or (), location)
        return ManagedTable(
            name,
            id,
            location,
            storage_options=credentials.options,
            expires_ms=credentials.expires_ms,
            properties=self._staged["properties"],
        )

    def _loaded(self, table: ManagedTable, verb: str) -> Mapping[str, Any]:
        """The table's entry, its commits with it.

        Raises
        ------
        StorageError
            `UNITY_TABLE_REPLACED`: the name is another table's by now.
        """
        answer = self._api.get(Name.of(table.name).path, None, verb, table.name)
        id = str(answer["metadata"]["table-uuid"])
        if id != table.id:
            raise UNITY_TABLE_REPLACED(
                verb=verb, table=table.name, coordinator=self.describe(), id=id, expected=table.id
            )
        return answer

    # --- commits

    def ratified(
        self, table: ManagedTable, start: int | None = None, end: int | None = None
    ) -> RatifiedCommits:
        if table.id == self._staged.get("id"):
            try:
                return _ratified(self._loaded(table, "read"), start, end)
            except DeltaError as error:
                if error.condition == COORDINATOR_TABLE_NOT_FOUND.name:
                    return RatifiedCommits(-1)
                if error.condition == UNITY_TABLE_REPLACED.name:
                    raise self._exists(Name.of(table.name)) from error
                raise
        return _ratified(self._loaded(table, "read"), start, end)

    def ratify(
        self,
        table: ManagedTable,
        commit: ProposedCommit,
        *,
        protocol: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        domains: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if commit.version == 0:
            assert protocol is not None and metadata is not None
            name = Name.of(table.name)
            entry = table_of(name.table, table.location, commit.timestamp, protocol, metadata, domains)
            self._register(name, table, entry)
            return
        entry_metadata: Mapping[str, Any] | None = None
        if protocol is not None or metadata is not None:
            entry_metadata = self._loaded(table, "commit to")["metadata"]
        if metadata is not None and UNIVERSAL_FORMAT_ENABLED_FORMATS.of(metadata.get("configuration") or {}):
            raise UNITY_CANNOT_UNIFORM(table=table.name, coordinator=self.describe())
        described = {
            "version": commit.version,
            "timestamp": commit.timestamp,
            "file-name": commit.file_name,
            "file-size": commit.size,
            "file-modification-timestamp": commit.modified_ms,
        }
        updates = [
            {"action": "add-commit", "commit": described},
            *updates_of(entry_metadata, protocol, metadata, domains),
        ]
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(attempt)
            if not self._refused_for_now(answer := self._update(table, updates, "commit to"), table):
                break
        self._judge(answer, table, commit)

    def _update(self, table: ManagedTable, updates: Sequence[Mapping[str, Any]], verb: str) -> Answer:
        """Send updates, once.

        Raises
        ------
        UncertainWriteError
            No answer, or one that does not tell whether it was done.
        StorageError
            Not sent.
        """
        body = {"requirements": [{"type": "assert-table-uuid", "uuid": table.id}], "updates": list(updates)}
        try:
            answer = self._api.send("POST", Name.of(table.name).path, body, verb, table.name)
        except NoAnswer as error:
            raise self._uncertain(table.name, str(error)) from error
        if answer.status != 200 and not _refuses(answer):
            raise self._uncertain(table.name, self._api.said(answer))
        return answer

    def _uncertain(self, table: str, reason: str) -> UncertainWriteError:
        return UncertainWriteError(
            f"{self.describe()} did not confirm a change of table {table}: {reason}",
            parameters={"table": table},
        )

    def _refused_for_now(self, answer: Answer, table: ManagedTable) -> bool:
        """Whether nothing was done, and the same request may be sent again."""
        if answer.status == 429:
            return answer.error != "ResourceExhaustedException"
        if answer.error == "UpdateRequirementConflictException":
            self._loaded(table, "commit to")  # where the name is another table's, this says so
            return True
        return False

    def _judge(self, answer: Answer, table: ManagedTable, commit: ProposedCommit) -> None:
        if answer.status == 200:
            return
        if answer.error == "CommitVersionConflictException":
            raise FileExistsError(f"version {commit.version} of {table.name} is ratified already")
        if answer.error == "ResourceExhaustedException":
            raise COORDINATOR_FULL(
                table=table.name, coordinator=self.describe(), reason=self._api.said(answer)
            )
        if "uniform" in answer.reason.lower():
            raise UNITY_CANNOT_UNIFORM(table=table.name, coordinator=self.describe())
        raise self._api.failure(answer, "commit to", table.name)

    def published(self, table: ManagedTable, version: int) -> None:
        if version < 1:
            return  # it is how tables begin
        note = {"action": "set-latest-backfilled-version", "latest-published-version": version}
        answer = self._update(table, [note], "note what is published of")
        if answer.status != 200:
            raise self._api.failure(answer, "note what is published of", table.name)

    def moment(self, tables: Sequence[ManagedTable]) -> list[RatifiedCommits]:
        if len(tables) == 1:
            return [self.ratified(tables[0])]
        raise COORDINATOR_CANNOT(
            coordinator=self.describe(), what="say of several tables what was ratified at one moment"
        )

    def keeps(self, configuration: Mapping[str, str]) -> Mapping[str, str]:
        return {name: value for name, value in configuration.items() if name in _KEPT}

    def allows(self, table: ManagedTable) -> frozenset[Maintenance]:
        return frozenset()  # version 1 of the API has no way to permit any

    # --- tables that come and go

    def create(
        self,
        name: str,
        location: str | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        allows: Collection[str] = (),
        latest: int = -1,
    ) -> ManagedTable:
        """Begin a table: it is in the catalog when its version 0 is committed."""
        if latest >= 0:
            raise COORDINATOR_CANNOT(
                coordinator=self.describe(), what="manage the commits of a table that is there"
            )
        if location:
            raise UNITY_CANNOT_PLACE(table=name, location=location, coordinator=self.describe())
        if allows:
            raise UNITY_CANNOT_PERMIT(coordinator=self.describe(), allows=",".join(allows))
        parts = Name.of(name)
        self._api.settle(parts.catalog, "create", name)
        try:
            answer = self._api.send("POST", parts.staging, {"name": parts.table}, "create", name)
        except NoAnswer as error:  # a place that nobody knows of is left there, and no table
            raise self._api.silence(error, "create", name) from error
        if answer.error == "AlreadyExistsException":
            raise self._exists(parts)
        if answer.status != 200:
            raise self._api.failure(answer, "create", name)
        staging = answer.body
        place = str(staging["location"])
        credentials = vended(staging.get("storage-credentials") or (), place)
        staged: dict[str, Any] = {
            "id": str(staging["table-id"]),
            "location": place,
            "properties": _required(staging),
        }
        return ManagedTable(
            str(parts),
            staged["id"],
            place,
            storage_options=credentials.options,
            expires_ms=credentials.expires_ms,
            properties=staged["properties"],
            open_with={STAGED_TABLE: json.dumps(staged)},
        )

    def register(
        self,
        name: str,
        location: str,
        timestamp: int,
        protocol: Mapping[str, Any],
        metadata: Mapping[str, Any],
        domains: Sequence[Mapping[str, Any]] = (),
    ) -> ManagedTable:
        """Make an entry of a Delta table that is there, and that stays one of its file system (an external table).

        Raises
        ------
        InvalidOptionError
            `COORDINATOR_TABLE_EXISTS`: the name is taken.
        StorageError
            As `resolve`.
        """
        parts = Name.of(name)
        self._api.settle(parts.catalog, "create", name)
        entry = table_of(parts.table, location, timestamp, protocol, metadata, domains, managed=False)
        self._register(parts, None, entry)
        return self.resolve(name)

    def _register(self, name: Name, table: ManagedTable | None, entry: Mapping[str, Any]) -> None:
        """Finish a table. A lost answer is looked for: only the one who began it can have finished it."""
        problem = ""
        answer: Answer | None = None
        try:
            answer = self._api.send("POST", name.tables, entry, "create", str(name))
        except NoAnswer as error:
            problem = str(error)
        if answer is not None and answer.status == 200:
            return
        if answer is not None and answer.status in (401, 403):
            raise self._api.failure(answer, "create", str(name))
        looked_up = self._api.try_get(name.path, None, "create", str(name))
        if looked_up.status == 200:
            metadata = looked_up.body["metadata"]
            mine = (
                metadata["table-uuid"] == table.id
                if table is not None
                else (
                    answer is None and metadata["location"].rstrip("/") == str(entry["location"]).rstrip("/")
                )
            )
            if mine:
                return
            raise self._exists(name)
        if answer is None or answer.status >= 500:
            raise self._uncertain(str(name), problem or (self._api.said(answer) if answer else ""))
        raise self._api.failure(answer, "create", str(name))

    def _exists(self, name: Name) -> DeltaError:
        answer = self._api.try_get(name.path, None, "create", str(name))
        where = answer.body["metadata"]["location"] if answer.status == 200 else "a place of its own"
        return COORDINATOR_TABLE_EXISTS(table=str(name), coordinator=self.describe(), location=where)

    def drop(self, name: str) -> None:
        """Take a table out of the catalog, which deletes the files of one that it manages when it likes."""
        parts = Name.of(name)
        self._api.settle(parts.catalog, "drop", name)
        try:
            answer = self._api.send(_DROP, parts.path, None, "drop", name)
        except NoAnswer as error:
            if self._api.try_get(parts.path, None, "drop", name).error == "NoSuchTableException":
                return
            raise self._uncertain(name, str(error)) from error
        if answer.status not in (200, 204):
            raise self._api.failure(answer, "drop", name)

    # --- what there is

    def catalogs(self) -> list[str]:
        """The names of the catalogs, in the server's order."""
        return [str(one["name"]) for one in self._api.pages("/catalogs", "catalogs", {}, "list")]

    def schemas(self, catalog: str) -> list[str]:
        """The names of a catalog's schemas."""
        entries = self._api.pages("/schemas", "schemas", {"catalog_name": catalog}, "list")
        return [str(one["name"]) for one in entries]

    def tables_in(self, catalog: str, schema: str) -> Iterator[ManagedTable]:
        """A schema's Delta tables, without credentials."""
        entries = self._api.pages(
            "/tables", "tables", {"catalog_name": catalog, "schema_name": schema}, "list"
        )
        for one in entries:
            if str(one.get("data_source_format") or "").upper() == "DELTA":
                yield ManagedTable(
                    str(Name(catalog, schema, str(one["name"]))),
                    str(one.get("table_id") or ""),
                    str(one.get("storage_location") or ""),
                    (one.get("properties") or {}).get(MANAGED) == "supported",
                )

    def all_tables(self) -> list[ManagedTable]:
        """All tables of all catalogs, in order of name, without credentials."""
        schemas = [(catalog, schema) for catalog in self.catalogs() for schema in self.schemas(catalog)]
        tables = [table for catalog, schema in schemas for table in self.tables_in(catalog, schema)]
        return sorted(tables, key=lambda table: table.name)


def _object(value: Any) -> Mapping[str, Any]:
    """A JSON object, that options of Spark have as a text, and those of the kernel perhaps as it is."""
    parsed: Mapping[str, Any] = (
        json.loads(value or "{}") if value is None or isinstance(value, str) else value
    )
    return parsed


def _refuses(answer: Answer) -> bool:
    """Whether an answer says that nothing was done; what a proxy says of requests that took too long does not."""
    return 400 <= answer.status < 500 and answer.status != 408


def _ratified(answer: Mapping[str, Any], start: int | None, end: int | None) -> RatifiedCommits:
    commits = sorted(
        (
            ProposedCommit(
                one["version"],
                one["file-name"],
                one["file-size"],
                one["file-modification-timestamp"],
                one["timestamp"],
            )
            for one in answer.get("commits") or ()
            if (start is None or one["version"] >= start) and (end is None or one["version"] <= end)
        ),
        key=lambda commit: commit.version,
    )
    return RatifiedCommits(int(answer.get("latest-table-version", -1)), tuple(commits))


def _required(answer: Mapping[str, Any]) -> dict[str, str]:
    """The properties that version 0 must have, features among them as properties turn them on."""
    protocol = answer.get("required-protocol") or {}
    features = {*(protocol.get("reader-features") or ()), *(protocol.get("writer-features") or ())}
    supported = {f"delta.feature.{name}": "supported" for name in sorted(features)}
    properties = answer.get("required-properties") or {}
    return supported | {name: value for name, value in properties.items() if value is not None}
