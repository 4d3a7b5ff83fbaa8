"""The `commitInfo` action, with delta-spark's fields.

Source: PROTOCOL.md, "Commit Provenance Information"; protocol-checklist CI-*; conflict-matrix section 10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from delta_ds.conditions.transaction import ACTION_NOT_JSON
from delta_ds.exceptions import CommitFailedError
from delta_ds.kernel.actions import CommitInfo, without_nulls
from delta_ds.kernel.json_text import to_json
from delta_ds.kernel.transaction import origin
from delta_ds.kernel.transaction.pending import IsolationLevel, Pending


def default_engine() -> str:
    """`engineInfo` of commits that the kernel makes by itself."""
    from delta_ds._version import __version__

    return f"delta_ds/{__version__}"


def build(
    pending: Pending,
    *,
    timestamp: int,
    txn_id: str,
    engine_info: str,
    parameters: Mapping[str, Any] | None,
    metrics: Mapping[str, Any] | None,
    user_metadata: str | None,
    tags: Mapping[str, Any] | None,
) -> CommitInfo:
    """`commitInfo` with its fields in delta-spark's order, without `inCommitTimestamp`.

    Parameters
    ----------
    timestamp
        Milliseconds since 1970.
    parameters
        Of the operation. Texts, numbers, truth values and None stay; lists and maps become JSON text.
    metrics
        Of the operation; None values are left out, all others become text.
    """
    version = pending.snapshot.version if pending.snapshot is not None else None
    level = pending.level
    if not pending.operation.rebased:
        # Serializable whatever the table says, and with a version read even for a new table.
        level, version = IsolationLevel.SERIALIZABLE, -1 if version is None else version
    known = {key: value for key, value in (metrics or {}).items() if value is not None}
    made_by = origin.current().fields()
    info: CommitInfo = {
        "timestamp": timestamp,
        "userName": made_by["userName"],
        "operation": pending.operation.name,
        "operationParameters": _written_properties(
            pending.table, "operationParameters", parameters, _parameter
        ),
        "job": made_by["job"],
        "notebook": made_by["notebook"],
        "clusterId": made_by["clusterId"],
        "readVersion": version,
        "isolationLevel": level.value,
        "isBlindAppend": pending.blind,
        "operationMetrics": _written_properties(pending.table, "operationMetrics", known, as_text),
        "userMetadata": user_metadata,
        "tags": _written_properties(pending.table, "tags", tags, as_text) if tags else None,
        "engineInfo": engine_info,
        "txnId": txn_id,
        "application": made_by["application"],
    }
    return without_nulls(info)


def _written_properties(
    table: str, name: str, values: Mapping[str, Any] | None, as_: Callable[[Any], Any]
) -> dict[str, Any]:
    try:
        return {key: as_(value) for key, value in (values or {}).items()}
    except ValueError as error:
        raise not_json(table, f"commitInfo action ({name})", error) from error


def not_json(table: str, action: str, error: ValueError) -> CommitFailedError:
    """The error for an action that JSON cannot hold, such as one with NaN."""
    return ACTION_NOT_JSON(action=action, table=table, reason=error)


def as_text(value: Any) -> str:
    """A value as delta-spark spells it in maps of texts: `true`, not `True`."""
    return value if isinstance(value, str) else to_json(value)


def _parameter(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return to_json(list(value) if isinstance(value, (tuple, set, frozenset)) else value)
