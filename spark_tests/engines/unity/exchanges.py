"""One course of requests, and what a server answers to it: what the fake server is held against.

    python -m spark_tests.engines.unity.exchanges URL ROOT

writes `exchanges.json` from a server that has a catalog `main` with its schema `sales` below ROOT, and no table.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from spark_tests.engines.unity.fake_server import API, READER_FEATURES, REQUIRED_PROPERTIES, WRITER_FEATURES

RECORDED = Path(__file__).with_name("exchanges.json")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TABLES = "/delta/v1/catalogs/main/schemas/sales/tables"
_COLUMNS = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {"comment": "c"}},
        {
            "name": "m", "nullable": True, "metadata": {},
            "type": {
                "type": "map", "key-type": "string", "value-contains-null": True,
                "value-type": {"type": "array", "element-type": "decimal(10,2)", "contains-null": False},
            },
        },
    ],
}  # fmt: skip


def course(url: str) -> list[dict[str, Any]]:
    """The requests in their order, each with its status and what of the answer does not change from run to run."""
    found: list[dict[str, Any]] = []

    def ask(method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            url + API + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        try:
            told = json.loads(text) if text else None
        except ValueError:
            told = None
        found.append({"request": f"{method} {_plain(path)}", "status": status, "answer": _kept(told)})
        return told

    def update(id: str, *updates: Any) -> None:
        ask(
            "POST",
            f"{_TABLES}/t",
            {"requirements": [{"type": "assert-table-uuid", "uuid": id}], "updates": [*updates]},
        )

    def commit(version: int, file: str) -> Any:
        told = {
            "version": version,
            "timestamp": 1_700_000_000_000 + version,
            "file-name": file,
            "file-size": 10,
        }
        return {"action": "add-commit", "commit": {**told, "file-modification-timestamp": 1_700_000_000_009}}

    def note(version: int) -> Any:
        return {"action": "set-latest-backfilled-version", "latest-published-version": version}

    ask("GET", "/delta/v1/config?catalog=main&protocol-versions=1.0")
    ask("GET", "/delta/v1/config?catalog=none&protocol-versions=1.0")
    ask("GET", "/delta/v1/nothing")
    ask("GET", f"{_TABLES}/t")
    ask("GET", f"{_TABLES.replace('sales', 'none')}/t")
    staged = ask("POST", _TABLES.replace("tables", "staging-tables"), {"name": "t"})
    id, location = staged["table-id"], staged["location"]
    ask("GET", f"/delta/v1/staging-tables/{id}/credentials")
    entry = {
        "name": "t", "location": location, "table-type": "MANAGED", "columns": _COLUMNS,
        "protocol": {
            "min-reader-version": 3, "min-writer-version": 7, "reader-features": READER_FEATURES,
            "writer-features": [*WRITER_FEATURES, "domainMetadata", "clustering", "rowTracking"],
        },
        "properties": {**REQUIRED_PROPERTIES, "io.unitycatalog.tableId": id, "mine": "x"},
        "domain-metadata": {"delta.clustering": {"clusteringColumns": [["id"]]}},
        "last-commit-timestamp-ms": 1_700_000_000_000,
    }  # fmt: skip
    ask("POST", _TABLES, {**entry, "location": None})
    ask("POST", _TABLES, {**entry, "properties": {}})
    ask("POST", _TABLES, {**entry, "location": location + "x"})
    ask("POST", _TABLES, entry)
    ask("POST", _TABLES, entry)
    ask("POST", _TABLES, {**entry, "name": "other"})
    ask("POST", _TABLES.replace("tables", "staging-tables"), {"name": "t"})
    ask("GET", f"{_TABLES}/t")
    ask("GET", f"{_TABLES}/t/credentials?operation=READ")
    update(id)
    update(id, note(1))
    update(id, commit(1, "a.json"))
    update(id, commit(1, "b.json"))
    update(id, commit(1, "a.json"))
    update(id, commit(3, "c.json"))
    update(id.replace(id[0], "0" if id[0] != "0" else "1", 1), commit(2, "c.json"))
    update(id, commit(2, "c.json"), note(1))
    update(id, note(3))
    update(id, note(2))
    ask("GET", f"{_TABLES}/t")
    columns = {**_COLUMNS, "fields": _COLUMNS["fields"][:1]}
    update(
        id, commit(3, "d.json"), {"action": "set-columns", "columns": columns},
        {"action": "set-properties", "updates": {"a": "b"}}, {"action": "remove-properties", "removals": ["mine"]},
        {"action": "set-domain-metadata", "updates": {"delta.rowTracking": {"rowIdHighWaterMark": 5}}},
        {"action": "set-table-comment", "comment": "c"},
    )  # fmt: skip
    update(id, commit(4, "e.json"), {"action": "remove-domain-metadata", "domains": ["delta.clustering"]})
    for version in range(5, 15):
        update(id, commit(version, f"{version}.json"))
    ask("GET", f"{_TABLES}/t")
    ask("DELETE", f"{_TABLES}/t")
    ask("DELETE", f"{_TABLES}/t")
    return found


def _plain(text: str) -> str:
    return _UUID.sub("UUID", text)


def _kept(told: Any) -> Any:
    if not isinstance(told, dict):
        return None
    if "error" in told:
        return {"type": told["error"]["type"]}
    if "metadata" in told:
        metadata = {
            k: v for k, v in told["metadata"].items() if k not in ("etag", "created-time", "updated-time")
        }
        kept: dict[str, Any] = {**told, "metadata": {**metadata, "location": "LOCATION"}}
    elif "storage-credentials" in told:
        kept = {k: v for k, v in told.items() if not k.startswith("suggested")}
        kept["storage-credentials"] = [{**one, "prefix": "LOCATION"} for one in told["storage-credentials"]]
        kept |= {"location": "LOCATION"} if "location" in told else {}
    else:
        kept = {"protocol-version": told.get("protocol-version")}
    return json.loads(_plain(json.dumps(_sorted(kept))))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        items = [_sorted(one) for one in value]
        return sorted(items) if all(isinstance(one, str) for one in items) else items
    return value


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(course(sys.argv[1]), indent=1) + "\n")
