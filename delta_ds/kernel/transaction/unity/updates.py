"""What a commit changes of a table, as updates of the catalog's entry: it is told with the commit, in one request.

Source: Unity Catalog, "Managed Tables Specification" 1.0, "Catalog and log consistency", "Load a Table".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN
from delta_ds.kernel.format.features import CATALOG_MANAGED
from delta_ds.kernel.format.properties import FEATURE_PREFIX, MIN_READER_VERSION, MIN_WRITER_VERSION

MANAGED = f"{FEATURE_PREFIX}{CATALOG_MANAGED.name}"
# Domains that the API has; all others stay in the log.
_DOMAINS = (CLUSTERING_DOMAIN, "delta.rowTracking")
# What the catalog derives of protocol, domains and commits, and lists among the properties.
_DERIVED = frozenset(
    {
        MIN_READER_VERSION.name, MIN_WRITER_VERSION.name, "delta.clusteringColumns", "clusteringColumns",
        "delta.rowTracking.rowIdHighWaterMark", "delta.lastUpdateVersion", "delta.lastCommitTimestamp",
    }
)  # fmt: skip


def protocol_of(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """A `protocol` action as the API spells it."""
    described: dict[str, Any] = {
        "min-reader-version": protocol["minReaderVersion"],
        "min-writer-version": protocol["minWriterVersion"],
    }
    for name, spelled in (("readerFeatures", "reader-features"), ("writerFeatures", "writer-features")):
        if protocol.get(name):
            described[spelled] = sorted(protocol[name])
    return described


def domains_of(domains: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """The domains of `domainMetadata` actions that the API has: those that are set, and those that are removed."""
    values: dict[str, Any] = {}
    removed = []
    for domain in domains:
        if domain["domain"] not in _DOMAINS:
            continue
        if domain.get("removed"):
            removed.append(domain["domain"])
            continue
        configuration = json.loads(domain["configuration"])
        name = "clusteringColumns" if domain["domain"] == CLUSTERING_DOMAIN else "rowIdHighWaterMark"
        if configuration.get(name) is not None:
            values[domain["domain"]] = {name: configuration[name]}
    return values, removed


def table_of(
    name: str,
    location: str,
    timestamp: int,
    protocol: Mapping[str, Any],
    metadata: Mapping[str, Any],
    domains: Sequence[Mapping[str, Any]],
    *,
    managed: bool = True,
) -> dict[str, Any]:
    """The request that makes an entry of a table whose version 0 is written."""
    entry: dict[str, Any] = {
        "name": name,
        "location": location,
        "table-type": "MANAGED" if managed else "EXTERNAL",
        "columns": columns_of(metadata["schemaString"]),
        "partition-columns": list(metadata.get("partitionColumns") or ()),
        "protocol": protocol_of(protocol),
        "properties": dict(metadata.get("configuration") or {}),
        "last-commit-timestamp-ms": timestamp,
    }
    if metadata.get("description"):
        entry["comment"] = metadata["description"]
    if domain_values := domains_of(domains)[0]:
        entry["domain-metadata"] = domain_values
    return entry


def updates_of(
    entry: Mapping[str, Any] | None,
    protocol: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    domains: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The updates that make an entry say what a commit makes of its table.

    Parameters
    ----------
    entry
        The entry's metadata as the catalog has it; not needed where there is neither protocol nor metadata.
    protocol, metadata, domains
        The bodies of the commit's actions.
    """
    updates: list[dict[str, Any]] = []
    if protocol is not None and entry is not None and _has_other_protocol(entry, protocol):
        updates.append({"action": "set-protocol", "protocol": protocol_of(protocol)})
    if metadata is not None and entry is not None:
        updates += _of_metadata(entry, metadata)
    values, removed = domains_of(domains)
    if values:
        updates.append({"action": "set-domain-metadata", "updates": values})
    if removed:
        updates.append({"action": "remove-domain-metadata", "domains": removed})
    return updates


def _has_other_protocol(entry: Mapping[str, Any], protocol: Mapping[str, Any]) -> bool:
    properties = entry.get("properties") or {}
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    return (
        {name.removeprefix(FEATURE_PREFIX) for name in properties if name.startswith(FEATURE_PREFIX)}
        != features
        or properties.get(MIN_READER_VERSION.name) != str(protocol["minReaderVersion"])
        or properties.get(MIN_WRITER_VERSION.name) != str(protocol["minWriterVersion"])
    )


def _of_metadata(entry: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    updates: list[dict[str, Any]] = []
    columns = columns_of(metadata["schemaString"])
    if columns != entry.get("columns"):
        updates.append({"action": "set-columns", "columns": columns})
    partitions = list(metadata.get("partitionColumns") or ())
    if partitions != list(entry.get("partition-columns") or ()):
        updates.append({"action": "set-partition-columns", "partition-columns": partitions})
    if metadata.get("description"):
        # The entry does not tell its comment, so it is told always.
        updates.append({"action": "set-table-comment", "comment": metadata["description"]})
    there = {
        name: value
        for name, value in (entry.get("properties") or {}).items()
        if name not in _DERIVED and not name.startswith(FEATURE_PREFIX)
    }
    configuration = dict(metadata.get("configuration") or {})
    changed = {name: value for name, value in configuration.items() if there.get(name) != value}
    if changed:
        updates.append({"action": "set-properties", "updates": changed})
    gone = sorted(there.keys() - configuration.keys())
    if gone:
        updates.append({"action": "remove-properties", "removals": gone})
    return updates


# --- columns as the API spells them: the table's schema, but for the names of what arrays and maps have

_SPELLED = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


def columns_of(schema: str) -> dict[str, Any]:
    """The columns of a `schemaString`."""
    return _spelled(json.loads(schema))  # type: ignore[no-any-return]


def _spelled(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    if "fields" in node:
        return {"type": "struct", "fields": [_field(field) for field in node["fields"]]}
    return {
        _SPELLED.get(name, name): _spelled(value) if name.endswith("Type") else value
        for name, value in node.items()
    }


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": field["name"],
        "type": _spelled(field["type"]),
        "nullable": field.get("nullable", True),
        "metadata": field.get("metadata") or {},
    }
