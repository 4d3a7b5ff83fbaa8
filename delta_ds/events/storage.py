"""Events of storage: commits that are not safe, files that could not be deleted."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

COMMIT_LEFT_TO_RECOVERY = Event(
    "commit_left_to_recovery", logging.WARNING, ("table", "version", "reason"),
    "a commit is in the DynamoDB table and not yet in the log; the next reader or writer completes it",
    "nothing",
)  # fmt: skip
COMMIT_RECOVERED = Event(
    "commit_recovered", logging.WARNING, ("path",),
    "a commit that another writer had left in the DynamoDB table was completed",
    "nothing",
)  # fmt: skip
COMMIT_LEFT_UNPUBLISHED = Event(
    "commit_left_unpublished", logging.WARNING, ("table", "version", "reason"),
    "a commit is ratified by its coordinator and not yet copied into the log; the next commit or checkpoint does it",
    "nothing; readers through the coordinator see it",
)  # fmt: skip
FILE_NAME_NOT_UTF8 = Event(
    "file_name_not_utf8", logging.WARNING, ("table", "path"),
    "a file below the table's folder has a name that is not UTF-8, and is left out",
    "rename or delete it",
)  # fmt: skip
FOLDER_NOT_FLUSHED = Event(
    "folder_not_flushed", logging.DEBUG, ("path", "reason"),
    "the folder of a new file could not be made durable",
    "nothing, unless the machine loses power",
)  # fmt: skip
PROBE_LEFT_BEHIND = Event(
    "probe_left_behind", logging.WARNING, ("path", "reason"),
    "the file by which a store was tried out could not be deleted",
    "delete it",
)  # fmt: skip
STAGED_COMMIT_LEFT = Event(
    "staged_commit_left", logging.WARNING, ("path", "reason"),
    "the staged file of a commit that was not ratified could not be deleted",
    "nothing; log clean-up deletes it, or you do when no commit runs",
)  # fmt: skip
TEMPORARY_COMMIT_LEFT = Event(
    "temporary_commit_left", logging.WARNING, ("path", "reason"),
    "the temporary file of a commit by the DynamoDB log store could not be deleted",
    "delete it when no commit runs",
)  # fmt: skip
UNSAFE_COMMIT = Event(
    "unsafe_commit", logging.WARNING, ("path", "reason"),
    "the file system has no hard links: a commit is made by a rename, and two writers at once may "
    "overwrite each other",
    "have one writer, or put the table elsewhere",
)  # fmt: skip
UNSAFE_COMMITS = Event(
    "unsafe_commits", logging.WARNING, ("table", "reason"),
    "the store cannot create a file only where none is: two writers at once may overwrite each "
    "other's commits",
    "have one writer, or name a log store (DynamoDB); see storage.md",
)  # fmt: skip
