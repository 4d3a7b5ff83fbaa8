"""The versions of a table for its page, newest first: what each commit did, and what the table had after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.kernel.commands.layout.timeline import timeline
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import list_log
from delta_ds.records import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

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
