"""A Unity Catalog server in a thread of the tests, and the troubles that it can make.

What it answers is what the specification says ("Managed Tables Specification" 1.0, `api/delta.yaml`), and where that
leaves something open what the open-source server 0.6.0 does; `exchanges.json` holds answers of that one, which this one
is compared with.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

API = "/api/2.1/unity-catalog"
MOST_UNPUBLISHED = 10
REQUIRED_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.enableDeletionVectors": "true",
}
READER_FEATURES = ["catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"]
WRITER_FEATURES = [*READER_FEATURES, "inCommitTimestamp"]
ENDPOINTS = [
    "POST /v1/catalogs/{catalog}/schemas/{schema}/staging-tables",
    "POST /v1/catalogs/{catalog}/schemas/{schema}/tables",
    "GET /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "POST /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "DELETE /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "GET /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/credentials",
    "GET /v1/staging-tables/{table_id}/credentials",
]


class Refused(Exception):
    """An answer that is none of success."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


def invalid(message: str) -> Refused:
    return Refused(400, "InvalidParameterValueException", message)


@dataclass
class Entry:
    """A table of the catalog."""

    id: str
    location: str
    managed: bool
    columns: dict[str, Any]
    partitions: list[str]
    properties: dict[str, str]
    comment: str | None
    made: int
    changed: int
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    latest: int = 0
    started: bool = False
    published: int = 0


@dataclass
class Fault:
    """A trouble with the requests that a pattern of `METHOD path` finds.

    Attributes
    ----------
    kind
        `drop`: the connection breaks before anything is done; `done_and_drop`: after it was done; `status`: another
        answer instead; `done_and_status`: after it was done; `slow`: it takes a while.
    """

    pattern: str
    kind: str
    times: int = 1
    status: int = 500
    body: str = ""
    seconds: float = 0.0


class UnityServer:
    """The state of a catalog server: catalogs, schemas, tables, tokens, what was asked.

    Parameters
    ----------
    root
        The folder below which tables lie that it places.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scheme = "file://"
        self.schemas: dict[str, dict[str, dict[str, Entry]]] = {}
        self.staged: dict[str, tuple[str, str]] = {}
        self.finished: set[str] = set()
        self.tokens: set[str] | None = None
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, str]] = []
        self.sent: list[Any] = []
        self.credentials: dict[str, str] = {}
        self.expires: int | None = None
        self.denied: set[str] = set()
        self.speaks = "1.0"
        self.lock = threading.RLock()
        self.url = ""

    # --- catalogs and lists

    def table(self, catalog: str, schema: str, table: str) -> Entry:
        found = self.schema(catalog, schema).get(table)
        if found is None:
            raise Refused(404, "NoSuchTableException", f"Table not found: {catalog}.{schema}.{table}")
        return found

    def schema(self, catalog: str, schema: str) -> dict[str, Entry]:
        if catalog not in self.schemas:
            raise Refused(404, "NoSuchCatalogException", f"Catalog not found: {catalog}")
        if schema not in self.schemas[catalog]:
            raise Refused(404, "NoSuchSchemaException", f"Schema not found: {schema}")
        return self.schemas[catalog][schema]

    # --- the API for Delta tables

    def config(self, catalog: str) -> Any:
        if catalog not in self.schemas:
            raise Refused(404, "NoSuchCatalogException", f"Catalog not found: {catalog}")
        return {"endpoints": ENDPOINTS, "protocol-version": self.speaks}

    def stage(self, catalog: str, schema: str, name: str) -> Any:
        tables = self.schema(catalog, schema)
        if name in tables:
            raise Refused(409, "AlreadyExistsException", f"Table already exists: {name}")
        id = str(uuid.uuid4())
        location = f"{self.scheme}{self.root}/__unitystorage/tables/{id}"
        self.staged[location] = (id, name)
        return {
            "table-id": id,
            "table-type": "MANAGED",
            "location": location,
            "storage-credentials": [self.credential(location, "READ_WRITE")],
            "required-protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": READER_FEATURES,
                "writer-features": WRITER_FEATURES,
            },
            "suggested-protocol": {
                "reader-features": ["columnMapping"],
                "writer-features": ["columnMapping"],
            },
            "required-properties": {**REQUIRED_PROPERTIES, "io.unitycatalog.tableId": id},
            "suggested-properties": {
                "delta.enableRowTracking": "true",
                "delta.columnMapping.maxColumnId": None,
            },
        }

    def credential(self, location: str, operation: str) -> Any:
        return {
            "prefix": location,
            "operation": operation,
            "config": dict(self.credentials),
            "expiration-time-ms": self.expires,
        }

    def create(self, catalog: str, schema: str, told: Any) -> Any:
        tables = self.schema(catalog, schema)
        name, location = told.get("name"), told.get("location")
        for value, what in ((name, "Table name"), (location, "Table location")):
            if not value:
                raise invalid(f"{what} is required.")
        managed = told.get("table-type") == "MANAGED"
        if told.get("last-commit-timestamp-ms") is None:
            raise invalid("last-commit-timestamp-ms is required.")
        properties = dict(told.get("properties") or {})
        if managed:
            check_contract(told["protocol"], properties)
        if name in tables:
            raise Refused(409, "AlreadyExistsException", f"Table already exists: {name}")
        if managed:
            if location not in self.staged:
                raise Refused(
                    404, "NoSuchTableException", f"Staging table with location {location} not found"
                )
            id = self.staged[location][0]
            if id in self.finished:
                raise invalid(f"Staging table with location {location} is already committed")
            if properties["io.unitycatalog.tableId"] != id:
                raise invalid(f"the table id ({id}) does not match the properties")
            self.finished.add(id)
        else:
            id = str(uuid.uuid4())
        properties |= derived(told["protocol"], told.get("domain-metadata") or {})
        properties |= {
            "delta.lastUpdateVersion": "0",
            "delta.lastCommitTimestamp": str(told["last-commit-timestamp-ms"]),
        }
        now = time.time_ns() // 1_000_000
        tables[name] = Entry(
            id, location, managed, told["columns"], list(told.get("partition-columns") or ()), properties,
            told.get("comment"), now, now,
        )  # fmt: skip
        return self.load(tables[name])

    def load(self, entry: Entry, *, noted: bool = False) -> Any:
        told: dict[str, Any] = {
            "metadata": {
                "etag": f"etag-{entry.changed}",
                "table-type": "MANAGED" if entry.managed else "EXTERNAL",
                "table-uuid": entry.id,
                "location": entry.location,
                "created-time": entry.made,
                "updated-time": entry.changed,
                "columns": entry.columns,
                "partition-columns": entry.partitions,
                "properties": dict(entry.properties),
                "last-commit-version": int(entry.properties["delta.lastUpdateVersion"]),
                "last-commit-timestamp-ms": int(entry.properties["delta.lastCommitTimestamp"]),
            }
        }
        if entry.managed:
            least = min(entry.published, entry.latest - 1) if noted else entry.published
            kept = [entry.commits[v] for v in sorted(entry.commits, reverse=True) if v > least]
            told |= {"commits": kept, "latest-table-version": entry.latest}
        return told

    def update(self, entry: Entry, told: Any) -> Any:
        updates = {}
        for one in told.get("updates") or ():
            if updates.setdefault(one.get("action"), one) is not one:
                raise invalid(f"At most one {one.get('action')} is allowed per request.")
        if not updates:
            raise invalid("At least one update is required.")
        wanted = {one["type"]: one for one in told.get("requirements") or ()}
        if "assert-table-uuid" not in wanted:
            raise invalid("assert-table-uuid requirement is required.")
        if wanted["assert-table-uuid"]["uuid"] != entry.id:
            raise Refused(409, "UpdateRequirementConflictException", "assert-table-uuid failed")
        before = (entry.columns, entry.partitions, dict(entry.properties), entry.comment)
        try:
            changed = apply_updates(entry, updates)
            commits = "add-commit" in updates or "set-latest-backfilled-version" in updates
            if commits and self.commit(entry, updates, changed):
                entry.columns, entry.partitions, entry.properties, entry.comment = before
                return self.load(entry)
        except Refused:
            entry.columns, entry.partitions, entry.properties, entry.comment = before
            raise
        if changed:
            entry.changed = max(time.time_ns() // 1_000_000, entry.changed + 1)
        # In its answer to the note itself, the open-source server still has the newest commit.
        return self.load(entry, noted="set-latest-backfilled-version" in updates)

    def commit(self, entry: Entry, updates: dict[str, Any], changed: bool) -> bool:
        """Take a commit, a note of what is published, or both; True: the commit was there already."""
        if not entry.managed:
            raise invalid("add-commit and set-latest-backfilled-version require a MANAGED Delta table.")
        published = updates.get("set-latest-backfilled-version", {}).get("latest-published-version")
        if "add-commit" not in updates:
            if not entry.started:
                raise invalid("Backfill request requires a prior commit; the table's commit log is empty.")
            if published > entry.latest:
                raise invalid(
                    f"Should not backfill version {published} while the last version committed is {entry.latest}"
                )
            self.publish(entry, published)
            return False
        commit = updates["add-commit"]["commit"]
        version = commit["version"]
        if version <= 0 or commit["file-size"] <= 0 or not commit["file-name"] or commit["timestamp"] <= 0:
            raise invalid("Field must be positive")
        uniform = "iceberg" in entry.properties.get("delta.universalFormat.enabledFormats", "")
        if uniform != ("uniform" in updates["add-commit"]):
            raise invalid("UniForm metadata must be set if and only if the table has UniForm enabled")
        if entry.started and version <= entry.latest:
            known = entry.commits.get(version)
            if known is not None and known["file-name"] == commit["file-name"]:
                return True
            raise Refused(
                409, "CommitVersionConflictException",
                f"Commit version already accepted. Current table version is {entry.latest}",
            )  # fmt: skip
        if version != entry.latest + 1:
            raise invalid(
                f"Commit version must be the next version after the latest commit {entry.latest}, but got {version}"
            )
        if published is not None and published > entry.latest:
            raise invalid(
                f"Latest backfilled version {published} cannot be greater than the last commit version"
            )
        held = sum(v > max(entry.published, published or 0) for v in entry.commits) + 1
        if held > MOST_UNPUBLISHED:
            raise Refused(
                429, "ResourceExhaustedException", f"Max number of commits per table reached: {entry.id}"
            )
        entry.commits[version] = commit
        entry.latest, entry.started = version, True
        if changed:
            entry.properties |= {
                "delta.lastUpdateVersion": str(version),
                "delta.lastCommitTimestamp": str(commit["timestamp"]),
            }
        if published is not None:
            self.publish(entry, published)
        return False

    @staticmethod
    def publish(entry: Entry, version: int) -> None:
        entry.published = max(entry.published, version)
        for old in [v for v in entry.commits if v <= entry.published and v != entry.latest]:
            del entry.commits[old]


def check_contract(protocol: Any, properties: dict[str, str]) -> None:
    for features, spelled, kind in (
        (READER_FEATURES, "reader-features", "reader-feature"),
        (WRITER_FEATURES, "writer-features", "writer-feature"),
    ):
        for name in features:
            if name not in (protocol.get(spelled) or ()):
                raise invalid(f"MANAGED table missing required {kind} '{name}'.")
    for name, value in REQUIRED_PROPERTIES.items():
        if properties.get(name) != value:
            raise invalid(
                f"MANAGED table required property '{name}' must be '{value}' (got '{properties.get(name)}')."
            )
    if not properties.get("io.unitycatalog.tableId"):
        raise invalid("MANAGED table required property 'io.unitycatalog.tableId' is missing.")


def derived(protocol: Any, domains: Any) -> dict[str, str]:
    found = {
        "delta.minReaderVersion": str(protocol["min-reader-version"]),
        "delta.minWriterVersion": str(protocol["min-writer-version"]),
    }
    for name in [*(protocol.get("reader-features") or ()), *(protocol.get("writer-features") or ())]:
        found[f"delta.feature.{name}"] = "supported"
    return found | of_domains(domains)


def of_domains(domains: Any) -> dict[str, str]:
    found = {}
    if "delta.clustering" in domains:
        found["clusteringColumns"] = json.dumps(domains["delta.clustering"]["clusteringColumns"])
    if "delta.rowTracking" in domains:
        found["delta.rowTracking.rowIdHighWaterMark"] = str(
            domains["delta.rowTracking"]["rowIdHighWaterMark"]
        )
    return found


def apply_updates(entry: Entry, updates: dict[str, Any]) -> bool:
    """Change an entry; whether anything but commits and high water marks of rows was."""
    changed = False
    for action, one in updates.items():
        if action in ("add-commit", "set-latest-backfilled-version"):
            continue
        changed = changed or action != "set-domain-metadata" or "delta.clustering" in one["updates"]
        if action == "set-columns":
            entry.columns = one["columns"]
        elif action == "set-partition-columns":
            entry.partitions = list(one["partition-columns"])
        elif action == "set-table-comment":
            entry.comment = one["comment"]
        elif action == "set-protocol":
            kept = {k: v for k, v in entry.properties.items() if not k.startswith("delta.feature.")}
            entry.properties = kept | derived(one["protocol"], {})
        elif action == "set-properties":
            entry.properties = entry.properties | one["updates"]
        elif action == "remove-properties":
            entry.properties = {k: v for k, v in entry.properties.items() if k not in one["removals"]}
        elif action == "set-domain-metadata":
            needs = {"delta.clustering": "clustering", "delta.rowTracking": "rowTracking"}
            for domain in one["updates"]:
                if entry.properties.get(f"delta.feature.{needs[domain]}") != "supported":
                    raise invalid(f"domain-metadata.{domain} requires the '{needs[domain]}' writer feature.")
            entry.properties = entry.properties | of_domains(one["updates"])
        elif action == "remove-domain-metadata":
            gone = {"delta.clustering": "clusteringColumns"}
            entry.properties = {
                k: v for k, v in entry.properties.items() if k not in {gone.get(d) for d in one["domains"]}
            }
        else:
            raise invalid(f"Unknown update action: {action}")
    return changed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: UnityServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is shown."""

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length) if length else b""
        state = self.state
        path = urlsplit(self.path).path
        with state.lock:
            state.asked.append((self.command, path.removeprefix(API)))
            if data:
                state.sent.append(json.loads(data))
            fault = next(
                (f for f in state.faults if f.times > 0 and re.search(f.pattern, f"{self.command} {path}")),
                None,
            )
            if fault is not None:
                fault.times -= 1
        if fault is not None and fault.kind == "slow":
            time.sleep(fault.seconds)
        if fault is not None and fault.kind == "drop":
            self.close_connection = True
            return
        if fault is not None and fault.kind == "status":
            self.say(fault.status, fault.body)
            return
        status, told = self.answer(data)
        if fault is not None and fault.kind == "done_and_drop":
            self.close_connection = True
            return
        if fault is not None and fault.kind == "done_and_status":
            self.say(fault.status, fault.body)
            return
        self.say(status, "" if told is None else json.dumps(told))

    do_GET = do_POST = do_DELETE = do_HEAD = handle_any

    def say(self, status: int, text: str) -> None:
        body = text.encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # who asked has gone

    def answer(self, data: bytes) -> tuple[int, Any]:
        state = self.state
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if state.tokens is not None and given not in state.tokens:
            return 401, error(401, "NotAuthorizedException", f"Invalid access token: {given}")
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = json.loads(data) if data else {}
        try:
            with state.lock:
                for method, pattern, run in ROUTES:
                    found = re.fullmatch(API + pattern, parts.path)
                    if method == self.command and found is not None:
                        return run(state, [unquote(group) for group in found.groups()], query, body)
        except Refused as refused:
            return refused.status, error(refused.status, refused.kind, str(refused))
        return 404, None


def error(status: int, kind: str, message: str) -> Any:
    return {"error": {"message": message, "type": kind, "code": status, "stack": None}}


Run = Callable[[UnityServer, list[str], dict[str, str], Any], "tuple[int, Any]"]


def _page(names: list[str], query: dict[str, str], most: int) -> tuple[list[str], str | None]:
    after = query.get("page_token", "")
    left = sorted(name for name in names if name > after)
    size = min(int(query.get("max_results", most)), most)
    return left[:size], left[size - 1] if len(left) > size else None


def _tables(state: UnityServer, _: list[str], query: dict[str, str], __: Any) -> tuple[int, Any]:
    tables = state.schema(query["catalog_name"], query["schema_name"])
    names, following = _page(list(tables), query, 2)
    return 200, {
        "tables": [
            {
                "name": name,
                "data_source_format": "DELTA",
                "table_id": tables[name].id,
                "storage_location": tables[name].location,
                "properties": tables[name].properties,
            }
            for name in names
        ],  # fmt: skip
        "next_page_token": following,
    }


def _catalogs(state: UnityServer, _: list[str], query: dict[str, str], __: Any) -> tuple[int, Any]:
    names, following = _page(list(state.schemas), query, 2)
    return 200, {"catalogs": [{"name": name} for name in names], "next_page_token": following}


def _schemas(state: UnityServer, _: list[str], query: dict[str, str], __: Any) -> tuple[int, Any]:
    names, following = _page(list(state.schemas[query["catalog_name"]]), query, 2)
    return 200, {"schemas": [{"name": name} for name in names], "next_page_token": following}


def _make_catalog(state: UnityServer, _: list[str], __: dict[str, str], body: Any) -> tuple[int, Any]:
    state.schemas[body["name"]] = {}
    return 200, {"name": body["name"]}


def _make_schema(state: UnityServer, _: list[str], __: dict[str, str], body: Any) -> tuple[int, Any]:
    state.schemas[body["catalog_name"]][body["name"]] = {}
    return 200, {"name": body["name"]}


def _drop(state: UnityServer, names: list[str], _: dict[str, str], __: Any) -> tuple[int, Any]:
    state.table(*names)
    del state.schemas[names[0]][names[1]][names[2]]
    return 204, None


def _credentials(state: UnityServer, names: list[str], query: dict[str, str], _: Any) -> tuple[int, Any]:
    entry = state.table(*names)
    if query["operation"] in state.denied:
        raise Refused(403, "PermissionDeniedException", "Access denied.")
    return 200, {"storage-credentials": [state.credential(entry.location, query["operation"])]}


def _staged_credentials(state: UnityServer, names: list[str], _: dict[str, str], __: Any) -> tuple[int, Any]:
    for location, (id, _name) in state.staged.items():
        if id == names[0]:
            return 200, {"storage-credentials": [state.credential(location, "READ_WRITE")]}
    raise Refused(404, "NoSuchTableException", f"Staging table not found: {names[0]}")


_SCHEMA = r"/delta/v1/catalogs/([^/]+)/schemas/([^/]+)"
ROUTES: list[tuple[str, str, Run]] = [
    ("GET", r"/delta/v1/config", lambda s, n, q, b: (200, s.config(q["catalog"]))),
    ("POST", rf"{_SCHEMA}/staging-tables", lambda s, n, q, b: (200, s.stage(n[0], n[1], b["name"]))),
    ("POST", rf"{_SCHEMA}/tables", lambda s, n, q, b: (200, s.create(n[0], n[1], b))),
    ("GET", rf"{_SCHEMA}/tables/([^/]+)", lambda s, n, q, b: (200, s.load(s.table(*n)))),
    ("POST", rf"{_SCHEMA}/tables/([^/]+)", lambda s, n, q, b: (200, s.update(s.table(*n), b))),
    ("DELETE", rf"{_SCHEMA}/tables/([^/]+)", _drop),
    ("GET", rf"{_SCHEMA}/tables/([^/]+)/credentials", _credentials),
    ("GET", r"/delta/v1/staging-tables/([^/]+)/credentials", _staged_credentials),
    ("GET", r"/tables", _tables),
    ("GET", r"/catalogs", _catalogs),
    ("GET", r"/schemas", _schemas),
    ("POST", r"/catalogs", _make_catalog),
    ("POST", r"/schemas", _make_schema),
]


@contextmanager
def running(root: Path) -> Iterator[UnityServer]:
    """A server on loopback with a catalog `main` and its schema `sales`."""
    state = UnityServer(root)
    state.schemas["main"] = {"sales": {}}
    handler = type("Handler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
