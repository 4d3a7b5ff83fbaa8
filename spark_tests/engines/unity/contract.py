"""What every Unity Catalog server and this package keep together: run against the fake one and the real one."""

from __future__ import annotations

import json
import threading
import urllib.request
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_ds
from delta_ds import (
    DeltaLog,
    InvalidOptionError,
    NotADeltaTableError,
    StorageError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.storage import store_errors as backoff
from delta_ds.kernel.storage.coordination.coordinator import ProposedCommit
from delta_ds.kernel.storage.coordination.log_store import CoordinatedLogStore
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.transaction.unity.coordinator import UnityCatalog

API = "/api/2.1/unity-catalog"


@dataclass(frozen=True)
class Place:
    """A server with a catalog `main` and its schema `sales`, for one test."""

    url: str
    token: str = ""

    @property
    def options(self) -> dict[str, str]:
        found = {"commitCoordinator": "unity", "coordinatorUrl": self.url}
        return {**found, "coordinatorToken": self.token} if self.token else found

    @property
    def catalog(self) -> UnityCatalog:
        return UnityCatalog(self.options)

    def named(self, name: str) -> dict[str, str]:
        return {**self.options, "catalogTable": name}

    def log(self, name: str) -> DeltaLog:
        """The log of a table that is there."""
        return DeltaLog(self.catalog.resolve(name).location, self.named(name))

    def create(self, name: str, rows: pa.Table | None = None, **options: str) -> DeltaLog:
        """A new table with rows, which is opened anew."""
        begun = self.catalog.create(name)
        log = DeltaLog(begun.location, {**self.named(name), **begun.open_with})
        log.write(ROWS if rows is None else rows, options=options)
        return self.log(name)

    def entry(self, name: str) -> dict[str, Any]:
        """What the server itself says of a table."""
        catalog, schema, table = name.split(".")
        path = f"{API}/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}"
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


ROWS = pa.table({"id": [1, 2]})


def ids(log: DeltaLog) -> list[int]:
    return sorted(log.snapshot().scan().to_arrow()["id"].to_pylist())


def folder(log: DeltaLog) -> Path:
    return Path(log.storage.address.path)


def published(log: DeltaLog) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder(log) / "_delta_log").glob("*.json"))}


def staged(log: DeltaLog) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder(log) / "_delta_log/_staged_commits").glob("*")}


def unpublishing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers end between ratifying and publishing."""

    def ends(self: object, version: int, data: bytes | None = None) -> None:
        raise StorageError("the writer is gone")

    monkeypatch.setattr(CoordinatedLogStore, "back_fill", ends)


class Contract:
    """The fixtures `place` (a `Place`) and `name` (a name that is not taken) come with the server."""

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backoff, "_FIRST", 0.005)

    @pytest.fixture
    def name(self) -> str:
        return f"main.sales.t_{uuid.uuid4().hex[:12]}"

    # --- tables come and go

    def test_a_new_table_has_what_the_catalog_wants(self, place: Place, name: str) -> None:
        log = place.create(name)
        snapshot = log.snapshot()
        assert ids(log) == [1, 2]
        known = place.entry(name)
        assert known["latest-table-version"] == 0
        assert known["metadata"]["location"].removeprefix("file://") == str(folder(log))
        assert snapshot.metadata.configuration["io.unitycatalog.tableId"] == known["metadata"]["table-uuid"]
        assert snapshot.metadata.configuration["delta.checkpointPolicy"] == "v2"
        features = {"catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"}
        assert features <= set(snapshot.protocol.reader_features or ())
        assert features | {"inCommitTimestamp"} <= set(snapshot.protocol.writer_features or ())
        # What the catalog knows is what the log says.
        told = known["metadata"]["properties"]
        assert {k: told[k] for k in snapshot.metadata.configuration} == snapshot.metadata.configuration
        assert {k.removeprefix("delta.feature.") for k in told if k.startswith("delta.feature.")} == set(
            snapshot.protocol.writer_features or ()
        )

    def test_a_begun_table_is_nobodys_until_its_first_version(self, place: Place, name: str) -> None:
        begun = place.catalog.create(name)
        with pytest.raises(StorageError, match="DELTA_COORDINATOR_TABLE_NOT_FOUND"):
            place.catalog.resolve(name)
        log = DeltaLog(begun.location, {**place.named(name), **begun.open_with})
        with pytest.raises(NotADeltaTableError):
            log.snapshot()
        # Another one with the name may be faster.
        place.create(name)
        with pytest.raises(InvalidOptionError, match="DELTA_COORDINATOR_TABLE_EXISTS"):
            log.write(ROWS)
        with pytest.raises(InvalidOptionError, match="DELTA_COORDINATOR_TABLE_EXISTS"):
            place.catalog.create(name)
        assert ids(place.log(name)) == [1, 2]

    def test_what_the_catalog_cannot_honour_is_refused(self, place: Place, name: str, tmp_path: Path) -> None:
        with pytest.raises(InvalidOptionError, match="DELTA_UNITY_CANNOT_PLACE"):
            place.catalog.create(name, str(tmp_path))
        with pytest.raises(InvalidOptionError, match="DELTA_UNITY_CANNOT_PERMIT"):
            place.catalog.create(name, allows=["vacuum"])
        with pytest.raises(UnsupportedOperationError, match="DELTA_COORDINATOR_CANNOT"):
            place.catalog.create(name, latest=3)
        begun = place.catalog.create(name)
        log = DeltaLog(begun.location, {**place.named(name), **begun.open_with})
        with pytest.raises(UnsupportedOperationError, match=r"delta.enableDeletionVectors .* stays 'true'"):
            log.write(ROWS, options={"delta.enableDeletionVectors": "false"})
        assert not published(log)

    @pytest.mark.parametrize(
        ("name", "condition"),
        [
            ("main.sales.none", "DELTA_COORDINATOR_TABLE_NOT_FOUND"),
            ("main.none.t", "DELTA_UNITY_NAMESPACE_NOT_FOUND"),
            ("none.sales.t", "DELTA_UNITY_NAMESPACE_NOT_FOUND"),
            ("sales.t", "DELTA_UNITY_INVALID_NAME"),
            ("main.sales.`a", "DELTA_UNITY_INVALID_NAME"),
            ("main..t", "DELTA_UNITY_INVALID_NAME"),
        ],
    )
    def test_names_that_are_not_there(self, place: Place, name: str, condition: str) -> None:
        with pytest.raises(DeltaError, match=condition):
            place.catalog.resolve(name)

    def test_a_dropped_table_is_gone_and_its_successor_is_another(self, place: Place, name: str) -> None:
        log = place.create(name)
        log.snapshot()
        old = place.catalog.resolve(name)
        place.catalog.drop(name)
        with pytest.raises(StorageError, match="DELTA_COORDINATOR_TABLE_NOT_FOUND"):
            place.catalog.drop(name)
        with pytest.raises(StorageError, match="DELTA_COORDINATOR_TABLE_NOT_FOUND"):
            log.write(ROWS)
        place.create(name, pa.table({"id": [7]}))
        with pytest.raises(StorageError, match="DELTA_UNITY_TABLE_REPLACED"):
            log.write(ROWS)
        with pytest.raises(StorageError, match="DELTA_UNITY_TABLE_REPLACED"):
            place.catalog.ratified(old)
        assert ids(place.log(name)) == [7]

    def test_a_table_is_not_opened_by_its_path_alone(self, place: Place, name: str) -> None:
        log = place.create(name)
        with pytest.raises(UnsupportedFeatureError, match="PATH_BASED_ACCESS"):
            DeltaLog(folder(log)).snapshot()
        with pytest.raises(InvalidOptionError, match="catalogTable"):
            DeltaLog(folder(log), place.options).snapshot()
        other = name + "_other"
        place.create(other)
        with pytest.raises(InvalidOptionError, match="DELTA_COORDINATOR_LOCATION_MISMATCH"):
            DeltaLog(folder(log), place.named(other)).snapshot()

    def test_external_tables_are_opened_by_name_and_commit_by_themselves(
        self, place: Place, name: str, tmp_path: Path
    ) -> None:
        plain = DeltaLog(tmp_path / "outside")
        plain.write(ROWS)
        found = place.catalog.register(name, f"file://{tmp_path}/outside", *described(plain))
        assert not found.managed
        log = place.log(name)
        log.write(pa.table({"id": [3]}))
        assert ids(log) == ids(plain) == [1, 2, 3]
        assert not (tmp_path / "outside/_delta_log/_staged_commits").exists()
        with pytest.raises(InvalidOptionError, match="DELTA_COORDINATOR_TABLE_EXISTS"):
            place.catalog.register(name, f"file://{tmp_path}/outside", *described(plain))

    def test_lists_name_all_tables(self, place: Place, name: str) -> None:
        made = {f"{name}_{number}" for number in range(5)}
        for one in made:
            place.create(one)
        assert made <= {table.name for table in place.catalog.tables_in("main", "sales")}
        (found,) = (table for table in place.catalog.all_tables() if table.name == f"{name}_3")
        assert found == place.catalog.resolve(found.name)
        assert "sales" in place.catalog.schemas("main")
        assert "main" in place.catalog.catalogs()

    def test_a_catalog_makes_lists_and_opens_tables_by_name(self, place: Place, name: str) -> None:
        given = {"coordinatorToken": place.token} if place.token else None
        catalog = delta_ds.catalog("unity", place.url, given)
        for one in (name, f"{name}_2"):
            assert catalog.create(one).write(ROWS) == 0
        assert catalog.log(name).write(ROWS) == 1
        assert {name, f"{name}_2"} <= set(catalog.names())
        assert catalog.options(name)["storage.catalogTable"] == name
        assert catalog.moment([name]).versions == {name: 1}
        with pytest.raises(UnsupportedOperationError, match="DELTA_COORDINATOR_CANNOT"):
            catalog.moment([name, f"{name}_2"])
        with pytest.raises(UnsupportedOperationError, match="DELTA_COORDINATOR_CANNOT"):
            catalog.allow(name, ["vacuum"])
        catalog.drop(name)
        with pytest.raises(StorageError, match="DELTA_COORDINATOR_TABLE_NOT_FOUND"):
            catalog.log(name)

    # --- commits

    def test_each_commit_is_staged_ratified_and_published(self, place: Place, name: str) -> None:
        log = place.create(name)
        for number in range(3, 6):
            log.write(pa.table({"id": [number]}))
        assert ids(place.log(name)) == [1, 2, 3, 4, 5]
        commits = published(log)
        assert sorted(commits) == [f"{version:020}.json" for version in range(4)]
        # The differential: what was staged is what is published, byte by byte.
        names = {f"{found.partition('.')[0]}.json": data for found, data in staged(log).items()}
        assert names == {found: data for found, data in commits.items() if int(found[:20]) > 0}
        answer = place.catalog.ratified(place.catalog.resolve(name))
        assert answer.latest == 3
        assert len(answer.commits) <= 1  # a server may keep the newest

    def test_a_version_is_ratified_once(self, place: Place, name: str) -> None:
        log = place.create(name)
        table = place.catalog.resolve(name)
        log.write(ROWS)
        rival = proposal(1)
        with pytest.raises(FileExistsError):
            place.catalog.ratify(table, rival)
        with pytest.raises(StorageError, match="DELTA_COORDINATOR_UNAVAILABLE"):
            place.catalog.ratify(table, proposal(3))
        assert place.catalog.ratified(table).latest == 1

    def test_a_commit_asked_for_again_is_ratified_once(self, place: Place, name: str) -> None:
        place.create(name)
        table = place.catalog.resolve(name)
        commit = proposal(1)
        place.catalog.ratify(table, commit)
        with suppress(FileExistsError):  # a server before 0.6 says so, and whoever asks compares the names
            place.catalog.ratify(table, commit)
        (found,) = place.catalog.ratified(table).commits
        assert (found.version, found.file_name) == (1, commit.file_name)

    def test_writers_at_once_lose_nothing(self, place: Place, name: str) -> None:
        place.create(name)
        failed: list[BaseException] = []

        def write(writer: int) -> None:
            try:
                log = place.log(name)
                for number in range(3):
                    log.write(pa.table({"id": [100 * writer + number]}))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        log = place.log(name)
        assert ids(log) == [1, 2, *(100 * w + n for w in range(1, 4) for n in range(3))]
        assert log.snapshot().version == 9

    def test_what_a_writer_left_is_read_and_published_by_the_next(
        self, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = place.create(name)
        with monkeypatch.context() as patch:
            unpublishing(patch)
            log.write(pa.table({"id": [3]}))
            log.write(pa.table({"id": [4]}))
        assert len(published(log)) == 1
        assert ids(place.log(name)) == [1, 2, 3, 4]
        place.log(name).write(pa.table({"id": [5]}))
        assert len(published(log)) == 4
        assert place.entry(name)["latest-table-version"] == 3
        assert ids(place.log(name)) == [1, 2, 3, 4, 5]

    def test_a_writer_publishes_what_others_left_where_the_catalog_is_full(
        self, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = place.create(name)
        with monkeypatch.context() as patch:
            unpublishing(patch)
            with pytest.raises(StorageError, match="DELTA_COORDINATOR_FULL") as refused:
                for number in range(3, 60):
                    log.write(pa.table({"id": [number]}))
            assert name in str(refused.value)
        done = ids(place.log(name))
        assert len(published(log)) == 1
        assert len(staged(log)) == len(done) - 2  # the one that was refused is not left
        # A new handle, and one that has known the table for a while.
        log.write(pa.table({"id": [1000]}))
        assert ids(place.log(name)) == [*done, 1000]
        assert len(published(log)) == len(done)

    def test_no_maintenance_is_permitted(self, place: Place, name: str) -> None:
        log = place.create(name)
        assert place.catalog.allows(place.catalog.resolve(name)) == frozenset()
        for operation in Maintenance:
            with pytest.raises(UnsupportedOperationError, match="MAINTENANCE_BLOCKED"):
                log.storage.check_allowed(operation, operation.value)

    # --- what the catalog is told with a commit

    def test_changes_of_columns_reach_the_catalog_with_the_commit(self, place: Place, name: str) -> None:
        nested = pa.table(
            {
                "id": pa.array([1], pa.int64()),
                "tags": pa.array([["a"]], pa.list_(pa.string())),
                "by": pa.array([[("k", {"x": 1.5})]], pa.map_(pa.string(), pa.struct([("x", pa.float64())]))),
                "price": pa.array([None], pa.decimal128(10, 2)),
            }
        )
        log = place.create(name, nested)
        log.write(pa.table({"id": [2], "more": ["b"]}), options={"mergeSchema": "true"})
        told = place.entry(name)["metadata"]
        assert [field["name"] for field in told["columns"]["fields"]] == ["id", "tags", "by", "price", "more"]
        kinds = {field["name"]: field["type"] for field in told["columns"]["fields"]}
        assert kinds["tags"] == {"type": "array", "element-type": "string", "contains-null": True}
        assert kinds["by"]["value-type"]["fields"][0]["type"] == "double"
        assert kinds["price"] == "decimal(10,2)"
        assert told["last-commit-version"] == 1
        log.write(pa.table({"id": [3]}))
        assert place.entry(name)["metadata"]["last-commit-version"] == 1

    def test_replacing_a_table_keeps_what_the_catalog_wants(self, place: Place, name: str) -> None:
        log = place.create(name)
        id = place.entry(name)["metadata"]["table-uuid"]
        log.write(
            pa.table({"day": ["a", "b"], "n": [1, 2]}),
            mode="overwrite",
            options={"overwriteSchema": "true", "partitionBy": "day"},
        )
        snapshot = place.log(name).snapshot()
        told = place.entry(name)["metadata"]
        assert snapshot.metadata.configuration["io.unitycatalog.tableId"] == id == told["table-uuid"]
        assert told["partition-columns"] == ["day"]
        assert [field["name"] for field in told["columns"]["fields"]] == ["day", "n"]
        assert snapshot.metadata.configuration["delta.enableInCommitTimestamps"] == "true"

    def test_an_entry_says_what_properties_and_protocol_are(self, place: Place, name: str) -> None:
        from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties

        log = place.create(name)
        set_properties(log, {"mine": "x", "delta.enableChangeDataFeed": "true"})
        told = place.entry(name)["metadata"]["properties"]
        assert (told["mine"], told["delta.enableChangeDataFeed"]) == ("x", "true")
        assert told["delta.feature.changeDataFeed"] == "supported"
        unset_properties(log, ["mine"])
        told = place.entry(name)["metadata"]["properties"]
        assert "mine" not in told
        assert told["delta.feature.changeDataFeed"] == "supported"
        with pytest.raises(UnsupportedOperationError, match="io.unitycatalog.tableId"):
            unset_properties(log, ["io.unitycatalog.tableId"])
        with pytest.raises(UnsupportedOperationError, match="delta.checkpointPolicy"):
            set_properties(log, {"delta.checkpointPolicy": "classic"})
        assert place.log(name).snapshot().version == 2

    def test_row_ids_reach_the_catalog(self, place: Place, name: str) -> None:
        log = place.create(name, **{"delta.enableRowTracking": "true"})
        log.write(pa.table({"id": [3, 4, 5]}))
        told = place.entry(name)["metadata"]
        assert told["properties"]["delta.rowTracking.rowIdHighWaterMark"] == "4"
        assert told["last-commit-version"] == 0


def described(log: DeltaLog) -> tuple[int, Mapping[str, Any], Mapping[str, Any]]:
    """Of a table whose version 0 made it: the timestamp, the protocol and the metadata."""
    lines = [json.loads(line) for line in published(log)[f"{0:020}.json"].splitlines()]
    found = {name: body for line in lines for name, body in line.items()}
    return found["commitInfo"]["timestamp"], found["protocol"], found["metaData"]


def proposal(version: int) -> ProposedCommit:
    return ProposedCommit(
        version, f"{version:020}.{uuid.uuid4()}.json", 100, 1_700_000_000_000, 1_700_000_000_000
    )
