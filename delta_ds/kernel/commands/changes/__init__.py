"""The change data feed: the rows that the commits of a table inserted, updated and deleted."""

from delta_ds.kernel.commands.changes.commit import (
    CHANGE_FIELDS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    CommitChanges,
    SliceMaker,
)
from delta_ds.kernel.commands.changes.feed import ChangeFeed, open_changes

__all__ = [
    "CHANGE_FIELDS",
    "CHANGE_TYPE",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "ChangeFeed",
    "CommitChanges",
    "SliceMaker",
    "open_changes",
]
