"""Every operation of the history as one record: what conflict checks and commits need to know of it.

A conflict rule of one operation is a field of its record. A commit by another name, which users of the kernel may
choose, follows the rules of `Operation` without any field set.

Source: delta-spark, `DeltaOperations`, `OptimisticTransaction`; conflict-matrix sections 1, 6 and 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes
    ----------
    name
        As `commitInfo` has it.
    changes_data
        Whether it counts as one that changes rows. A commit of another one that only rearranges files is checked
        under snapshot isolation.
    checked_for_appends
        Whether files that others add meanwhile concern it, and files that it adds concern others; False where it
        commits files again whose rows stay as they are.
    replaces_table
        Whether another table takes the place of the one that is there, whatever is decided of that one meanwhile.
    may_lower_protocol
        Whether the new protocol may lack features of the one before.
    rebased
        Whether it is tried again on top of what others committed first; False: it must be the very next commit.
    copies_files
        Whether it commits files with the statistics that another table or version had of them.
    takes_description
        Whether files come and go with the description that they had, of another table or version: columns may be
        others then, also under a change feed, whose readers are told of that.
    checkpoints
        Whether a checkpoint follows at once, whatever the table's interval.
    metrics
        The metrics that the history has of it, by their names; None: all that are told.
    """

    name: str
    changes_data: bool = False
    checked_for_appends: bool = True
    replaces_table: bool = False
    may_lower_protocol: bool = False
    rebased: bool = True
    copies_files: bool = False
    takes_description: bool = False
    checkpoints: bool = False
    metrics: frozenset[str] | None = None

    def shown(self, metrics: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Those of some metrics that the history has.

        >>> TRUNCATE.shown({"numRemovedFiles": 1, "numAddedFiles": 0})
        {'numRemovedFiles': 1}
        """
        if metrics is None or self.metrics is None:
            return metrics
        return {name: value for name, value in metrics.items() if name in self.metrics}

    def __str__(self) -> str:
        return self.name


def _replacing(name: str) -> Operation:
    return Operation(name, changes_data=True, replaces_table=True, may_lower_protocol=True)


# Rows
WRITE = Operation("WRITE", changes_data=True)
STREAMING_UPDATE = Operation("STREAMING UPDATE", changes_data=True)
DELETE = Operation("DELETE", changes_data=True)
TRUNCATE = Operation("TRUNCATE", changes_data=True, metrics=frozenset(["numRemovedFiles", "executionTimeMs"]))
UPDATE = Operation("UPDATE", changes_data=True)
MERGE = Operation("MERGE", changes_data=True)

# Whole tables
CREATE_TABLE = Operation("CREATE TABLE")
CREATE_TABLE_AS_SELECT = Operation("CREATE TABLE AS SELECT", changes_data=True)
REPLACE_TABLE = _replacing("REPLACE TABLE")
REPLACE_TABLE_AS_SELECT = _replacing("REPLACE TABLE AS SELECT")
CREATE_OR_REPLACE_TABLE = _replacing("CREATE OR REPLACE TABLE")
CREATE_OR_REPLACE_TABLE_AS_SELECT = _replacing("CREATE OR REPLACE TABLE AS SELECT")
CLONE = Operation("CLONE", changes_data=True, rebased=False, copies_files=True, takes_description=True)
# The commit of a conversion is as long as a checkpoint, and slower to read.
CONVERT = Operation("CONVERT", changes_data=True, rebased=False, copies_files=True, checkpoints=True)
# Goes back to features of then only where its caller allows that.
RESTORE = Operation(
    "RESTORE",
    changes_data=True,
    may_lower_protocol=True,
    rebased=False,
    copies_files=True,
    takes_description=True,
)

# Files, with the rows as they are
OPTIMIZE = Operation("OPTIMIZE")
REORG = Operation("REORG")
COMPUTE_STATS = Operation("COMPUTE STATS")
REMOVE_COLUMN_MAPPING = Operation("REMOVE COLUMN MAPPING", metrics=frozenset(["numOutputBytes"]))
ROW_TRACKING_BACKFILL = Operation("ROW TRACKING BACKFILL", checked_for_appends=False, copies_files=True)
ROW_TRACKING_UNBACKFILL = Operation("ROW TRACKING UNBACKFILL", checked_for_appends=False)
VACUUM_START = Operation("VACUUM START")
VACUUM_END = Operation("VACUUM END")
DELETION_VECTOR_TOMBSTONES = Operation("Deletion Vector Tombstones")
EMPTY_COMMIT = Operation("Empty Commit")

# The description of a table
SET_TBLPROPERTIES = Operation("SET TBLPROPERTIES")
UNSET_TBLPROPERTIES = Operation("UNSET TBLPROPERTIES")
UPGRADE_UNIFORM = Operation("REORG TABLE UPGRADE UNIFORM")
UPGRADE_PROTOCOL = Operation("UPGRADE PROTOCOL")
DROP_FEATURE = Operation("DROP FEATURE", may_lower_protocol=True)
ADD_COLUMNS = Operation("ADD COLUMNS")
CHANGE_COLUMN = Operation("CHANGE COLUMN")
CHANGE_COLUMNS = Operation("CHANGE COLUMNS")
REPLACE_COLUMNS = Operation("REPLACE COLUMNS")
RENAME_COLUMN = Operation("RENAME COLUMN")
DROP_COLUMNS = Operation("DROP COLUMNS")
ADD_CONSTRAINT = Operation("ADD CONSTRAINT")
DROP_CONSTRAINT = Operation("DROP CONSTRAINT")
CLUSTER_BY = Operation("CLUSTER BY")

OPERATIONS: dict[str, Operation] = {
    operation.name: operation for operation in tuple(globals().values()) if isinstance(operation, Operation)
}


def operation_named(name: str) -> Operation:
    """The operation of that name; one without rules of its own where none is known."""
    return OPERATIONS.get(name) or Operation(name)
