"""The errors of commits that contradict each other: what met, on which file, and what to do.

Source: conflict-matrix section 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from delta_ds.exceptions import DeltaConcurrentModificationException
from delta_ds.kernel.transaction.pending import Pending
from delta_ds.kernel.transaction.winning_commit import WinningCommit

Conflict = TypeVar("Conflict", bound=DeltaConcurrentModificationException)


def file_conflict(
    kind: type[Conflict],
    pending: Pending,
    winning_commit: WinningCommit,
    path: str,
    values: Mapping[str, str | None] | None,
    what: str,
) -> Conflict:
    hint = _partition_hint(pending, values)
    where = f"in the partition {hint}: file {path!r}" if hint else f"file {path!r}"
    form = "WITH_PARTITION_HINT" if hint else "WITHOUT_HINT"
    return conflict(
        kind, pending, winning_commit, f"{what} ({where})", condition=f"{kind.default_condition}.{form}", file=path,
        **({"partitionValues": hint} if hint else {}),
    )  # fmt: skip


def _partition_hint(pending: Pending, values: Mapping[str, str | None] | None) -> str | None:
    if pending.snapshot is None or not values:
        return None
    names = zip(pending.snapshot.partition_columns, pending.snapshot.physical_partition_columns, strict=True)
    shown = [f"{logical}={_or_null(values.get(physical))}" for logical, physical in names]
    return f"[{', '.join(shown)}]" if shown else None


def _or_null(value: str | None) -> str:
    return "null" if value is None else value


def conflict(
    kind: type[Conflict],
    pending: Pending,
    winning_commit: WinningCommit,
    what: str,
    *,
    condition: str | None = None,
    **more: Any,
) -> Conflict:
    operation = winning_commit.operation or "TRANSACTION"
    read = f"read version {pending.snapshot.version}" if pending.snapshot is not None else "a new table"
    return kind(
        f"Transaction conflict detected: a concurrent {operation}, committed as version {winning_commit.version} of "
        f"table {pending.table}, {what}. Nothing was written by this {pending.operation} ({read}). Run it again: it "
        "will then see that version",
        condition=condition,
        parameters={
            "version": winning_commit.version, "operation": winning_commit.operation, "table": pending.table,
            "commitInfo": dict(winning_commit.info), **more,
        },
    )  # fmt: skip
