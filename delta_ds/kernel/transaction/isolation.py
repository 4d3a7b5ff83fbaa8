"""The isolation level a commit is checked at, and whether it is a blind append.

The default level is Serializable, as delta-spark's is; the documentation of the format names WriteSerializable.

Source: conflict-matrix section 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from delta_ds.conditions.transaction import INVALID_ISOLATION_LEVEL
from delta_ds.kernel.properties import ISOLATION_LEVEL


class IsolationLevel(Enum):
    """The isolation levels: which commits in between conflict."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def table_level(configuration: Mapping[str, str], table: str) -> IsolationLevel:
    """The isolation level of a table; a stored `SnapshotIsolation` counts although it cannot be set.

    Raises
    ------
    InvalidOptionError
        The table holds a text that is no level.
    """
    text = configuration.get(ISOLATION_LEVEL.name) or ISOLATION_LEVEL.default or ""
    for level in IsolationLevel:
        if level.value.lower() == text.strip().lower():
            return level
    raise INVALID_ISOLATION_LEVEL(
        table=table, isolationLevel=text, levels=", ".join(level.value for level in IsolationLevel)
    )


def commit_level(level: IsolationLevel, *, only_rearranges: bool, changes_data: bool) -> IsolationLevel:
    """The level that one commit is checked at.

    Parameters
    ----------
    level
        The table's.
    only_rearranges
        Whether every action is a file action with `dataChange` false, or the row tracking domain; holds for
        a commit without actions.
    changes_data
        Whether the operation counts as one that changes rows.
    """
    if not only_rearranges:
        return level
    if level is IsolationLevel.SERIALIZABLE or (
        level is IsolationLevel.WRITE_SERIALIZABLE and not changes_data
    ):
        return IsolationLevel.SNAPSHOT
    return level
