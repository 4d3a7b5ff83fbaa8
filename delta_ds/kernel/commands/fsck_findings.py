"""`Finding`: one thing that is wrong or odd, and the kinds that there are."""

from __future__ import annotations

from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """What can be found.

    Attributes
    ----------
    name
        For programs.
    damage
        Whether rows or versions cannot be read, or are read wrong; else it costs only space or time.
    advice
        What to do.
    """

    name: str
    damage: bool
    advice: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    kind
        What it is.
    path
        The file, relative to the table where it is below it; empty for the table itself.
    detail
        What exactly.
    """

    kind: Kind
    path: str
    detail: str


MISSING_FILE = Kind(
    "missing_file",
    True,
    "bring the file back from a backup or a version of the bucket; else RESTORE to a version before it, or delete its "
    "rows by the partition and write them again",
)
MISSING_VECTOR = Kind(
    "missing_deletion_vector",
    True,
    "bring the file back from a backup; without it nobody knows which rows of its data files are deleted",
)
DAMAGED_VECTOR = Kind(
    "damaged_deletion_vector",
    True,
    "bring the file back from a backup, or RESTORE to a version before it; without it nobody knows which rows of its "
    "data file are deleted",
)
WRONG_FILE_ACTION = Kind(
    "wrong_file_action",
    True,
    "the commit that added the file says what makes no sense: RESTORE to a version before it, or write the rows of its "
    "partition again",
)
WRONG_SIZE = Kind(
    "wrong_size", True, "the file was replaced or cut off: bring the one back that was committed"
)
UNREADABLE_FILE = Kind(
    "unreadable_file", True, "the file is damaged, or not one of this table: bring it back from a backup"
)
WRONG_STATISTICS = Kind(
    "wrong_statistics",
    True,
    "filters may skip rows of this file: rewrite it, for instance by UPDATE of its partition or OPTIMIZE",
)
UNREADABLE_VERSION = Kind(
    "unreadable_version",
    True,
    "see what is found in the log; RESTORE and time travel reach versions before the damage",
)
UNREADABLE_COMMIT = Kind(
    "unreadable_commit",
    True,
    "bring the file back from a backup; versions from a later checkpoint on can be read without it",
)
MISSING_COMMIT = Kind(
    "missing_commit",
    True,
    "versions between the last checkpoint before it and the next one after it cannot be read any more",
)
UNREADABLE_CHECKPOINT = Kind(
    "unreadable_checkpoint", True, "delete it if all commits before it are there, and write a new one"
)
WRONG_CHECKPOINT = Kind(
    "wrong_checkpoint",
    True,
    "it does not say what the commits before it say: find out which of them is right before anything is written",
)
WRONG_CHECKSUM = Kind(
    "wrong_checksum",
    False,
    "delete the .crc file: readers warn of it, and the next commit writes a right one",
)
UNREFERENCED_FILE = Kind(
    "unreferenced_file", False, "no version names it; VACUUM deletes it once it is older than the retention"
)
NO_STATISTICS = Kind(
    "no_statistics", False, "no filter skips it but by its partition; rewriting the file gives it statistics"
)
LONG_TAIL = Kind("long_tail", False, "write a checkpoint: each new reader reads all these commits")
