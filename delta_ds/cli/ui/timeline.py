"""The versions of a table for its page, newest first, and the actions of one commit, some at a time.

Of a version: what its commit did, and what the table had after it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.base.arrow_buffers import true_rows
from delta_ds.kernel.commands.layout.timeline import timeline
from delta_ds.kernel.format.actions import counted_rows
from delta_ds.kernel.log import history
from delta_ds.kernel.log.json_actions import parse_file_actions, parse_line
from delta_ds.kernel.log.segment import list_log, version_not_found
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from delta_ds.cli.ui.view import TableView


_MOST_TEXT = 2000
# Rows by what became of them: the metrics that count them, the first that a commit has.
_ROW_METRICS = {
    "inserted": ("numTargetRowsInserted",),
    "updated": ("numUpdatedRows", "numTargetRowsUpdated"),
    "deleted": ("numDeletedRows", "numTargetRowsDeleted"),
}
_WRITTEN_ROWS = "numOutputRows"
_DESCRIBED = ("operation", "userName", "engineInfo", "userMetadata", "isolationLevel", "isBlindAppend")


def timeline_page(view: TableView, before: int | None, limit: int) -> dict[str, Any]:
    """Some versions and what happened in them.

    Parameters
    ----------
    before
        Only those below this version; None: from the newest on.

    Raises
    ------
    DeltaError
        The log is damaged, or there is no such version.
    """
    if before == 0:
        return {"versions": [], "older": False}
    last = view.newest() if before is None else view.snapshot(before - 1)
    # What the first of a timeline changed is not told: it is there for the second one's sake.
    counted = {row["version"]: row for row in timeline(last, limit + 1).versions.to_pylist()}
    listing = list_log(view.log.storage)
    wanted = sorted(counted)[-limit:]
    listing = replace(listing, commits={v: file for v, file in listing.commits.items() if v <= last.version})
    described = history.describe(view.log.storage, listing, last.table_state, len(wanted))
    return {
        "versions": [_version(entry, counted.get(entry["version"], {})) for entry in described],
        "older": min(counted) < wanted[0] if wanted else False,
    }


def _version(entry: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    metrics = {name: _cut(value) for name, value in (entry["operationMetrics"] or {}).items()}
    parameters = {name: _cut(value) for name, value in (entry["operationParameters"] or {}).items()}
    counts = {name: value for name, value in counted.items() if name not in ("timestamp", "operation")}
    return {
        "version": entry["version"],
        "timestamp": entry["timestamp"],
        **{name: _cut(entry[name]) for name in _DESCRIBED},
        **counts,
        "rows": _rows(entry["operationMetrics"] or {}),
        "parameters": parameters,
        "metrics": metrics,
    }


def _rows(metrics: Mapping[str, Any]) -> dict[str, int]:
    """How many rows a commit inserted, updated and deleted, as far as its metrics tell."""
    found = {}
    for kind, names in _ROW_METRICS.items():
        number = next((_number(metrics[name]) for name in names if name in metrics), None)
        if number is not None:
            found[kind] = number
    written = _number(metrics.get(_WRITTEN_ROWS))
    if not found and written is not None:
        found["inserted"] = written
    return found


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _cut(value: Any) -> Any:
    return value if not isinstance(value, str) or len(value) <= _MOST_TEXT else value[:_MOST_TEXT] + "..."


_FILE_ACTIONS = ("add", "remove", "cdc")
# Of the text of an action, letters.
_MOST_TEXT_OF_ACTION = 20_000


def commit_page(view: TableView, version: int, offset: int, limit: int) -> dict[str, Any]:
    """The actions of a version: those on no file first, whole; those on files a page at a time.

    Raises
    ------
    VersionNotFoundError
        The log has no commit of the version.
    LogError
        It is damaged.
    """
    import pyarrow.compute as pc

    storage = view.log.storage
    path = relative_commit_path(version)
    try:
        data = storage.read(path)
    except FileNotFoundError:
        raise version_not_found(list_log(storage), version) from None
    where = f"{path} of {storage.url}"
    kinds = _kinds(where, data)
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    others = true_rows(pc.is_null(kinds)).to_pylist()
    on_files = true_rows(pc.is_valid(kinds))
    counts = {each["values"]: each["counts"] for each in pc.value_counts(kinds).to_pylist() if each["values"]}
    page, shown = (
        [parse_line(line, number, where) for number, line in (lines[n] for n in chosen)]
        for chosen in (on_files[offset : offset + limit].to_pylist(), others[:limit])
    )
    return {
        "version": version,
        "counts": {kind: counts.get(kind, 0) for kind in _FILE_ACTIONS},
        "actions": [_shown(action) for action in shown],
        "numActions": len(others),
        "files": [_file(action) for action in page],
    }


def _kinds(where: str, data: bytes) -> pa.Array:
    """For each line the name of its action if that is on a file, else null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    body = pa.struct([("path", pa.string())])
    tables = parse_file_actions([(where, data)], pa.schema([(name, body) for name in _FILE_ACTIONS]))
    if not tables:
        return pa.array([], pa.string())
    found = pa.concat_tables(tables)
    kinds = pa.nulls(found.num_rows, pa.string())
    for name in _FILE_ACTIONS:
        kinds = pc.if_else(pc.is_valid(found[name].combine_chunks()), pa.scalar(name), kinds)
    return kinds


def _shown(action: Any) -> dict[str, Any]:
    kind = next(iter(action), "") if isinstance(action, dict) else ""
    text = json.dumps(action.get(kind) if kind else action, indent=2, ensure_ascii=False)
    return {
        "kind": kind,
        "text": text[:_MOST_TEXT_OF_ACTION],
        "cut": max(0, len(text) - _MOST_TEXT_OF_ACTION),
    }


def _file(action: Any) -> dict[str, Any]:
    kind, body = next((name, action[name]) for name in _FILE_ACTIONS if action.get(name) is not None)
    vector = body.get("deletionVector")
    return {
        "kind": kind,
        "path": body.get("path"),
        "size": body.get("size"),
        "rows": counted_rows(body.get("stats")),
        "deleted": vector.get("cardinality") if isinstance(vector, dict) else None,
        "dataChange": body.get("dataChange"),
        **{key: value for key, value in _shown(action).items() if key != "kind"},
    }
