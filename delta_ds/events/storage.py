"""Events of storage: commits that are not safe, files that could not be deleted."""

from __future__ import annotations

from delta_ds.events.record import Event

COMMIT_LEFT_TO_RECOVERY = Event.warning(
    "commit_left_to_recovery table version reason",
    "a commit is in the log, but its entry in the DynamoDB table is not complete; the next reader or writer "
    "completes it",
    "nothing",
)
COMMIT_RECOVERED = Event.warning(
    "commit_recovered path",
    "a commit that another writer had left in the DynamoDB table was completed",
    "nothing",
)
COMMIT_LEFT_UNPUBLISHED = Event.warning(
    "commit_left_unpublished table version reason",
    "a commit is ratified by its coordinator and not yet copied into the log; the next commit or checkpoint does it",
    "nothing; readers through the coordinator see it",
)
DELETION_REFUSED = Event.warning(
    "deletion_refused table kind path reason files",
    "files that a command should delete stay: they are outside the table or behind a link, or do not have names of "
    "the kind that it owns; `path` is one of them",
    "check where the path leads and who created it; delete it yourself if it is not needed",
)
FILE_NAME_NOT_UTF8 = Event.warning(
    "file_name_not_utf8 table path",
    "a file below the table's folder has a name that is not UTF-8, so it is ignored",
    "rename or delete it",
)
COMMIT_REPLACED = Event.warning(
    "commit_replaced table version",
    "a version that this process has seen is another file now: the table was created again, or a writer without "
    "conditional puts has overwritten the commit, whose content is lost",
    "let all writers of the table decide commits in the same way; see storage.md",
)
DYNAMODB_NOT_LOOKED_FOR = Event.debug(
    "dynamodb_not_looked_for table reason",
    "it could not be determined whether other writers of a table decide commits with DynamoDB",
    "nothing",
)
DYNAMODB_WRITERS_FOUND = Event.warning(
    "dynamodb_writers_found table path",
    "other writers decide commits of the table with DynamoDB, but this one does not: old versions of this package "
    "and delta-spark may overwrite its commits",
    "set the log store DynamoDB here too, or stop the others from using it; see storage.md",
)
FOLDER_NOT_FLUSHED = Event.debug(
    "folder_not_flushed path reason",
    "the folder of a new file could not be made durable",
    "nothing, unless the machine loses power",
)
LINK_NOT_FOLLOWED = Event.warning(
    "link_not_followed table path",
    "a folder below the table's folder is a link: files behind it are not listed, so no command deletes them",
    "manage the files behind it yourself, or replace the link with a folder",
)
OTHER_COMMIT_IN_PLACE = Event.warning(
    "other_commit_in_place table version",
    "DynamoDB decided a commit whose file already exists: some writer of the table does not use DynamoDB. The "
    "existing commit counts, and a writer of this package commits again after it",
    "let all writers of the table decide commits in the same way; see storage.md",
)
PROBE_LEFT_BEHIND = Event.warning(
    "probe_left_behind path reason",
    "the test file for a store could not be deleted",
    "delete it",
)
STAGED_COMMIT_LEFT = Event.warning(
    "staged_commit_left path reason",
    "the staged file of a commit that was not ratified could not be deleted",
    "nothing; log clean-up deletes it, or you do when no commit runs",
)
TEMPORARY_COMMIT_LEFT = Event.warning(
    "temporary_commit_left path reason",
    "the temporary file of a commit by the DynamoDB log store could not be deleted",
    "delete it when no commit runs",
)
PUT_NOT_CONDITIONAL = Event.warning(
    "put_not_conditional path",
    "the server does not know conditional puts, so DynamoDB alone decides commits, and the commits of a writer that "
    "does not use it are overwritten",
    "let all writers of the table use DynamoDB",
)
UNSAFE_COMMIT = Event.warning(
    "unsafe_commit path reason",
    "the file system has no hard links: a commit is made by a rename, and two writers at once may "
    "overwrite each other",
    "use one writer only, or move the table to another store",
)
UNSAFE_COMMITS = Event.warning(
    "unsafe_commits table reason",
    "the store cannot create a file only if it does not exist: two writers at once may overwrite each other's commits",
    "use one writer only, or configure a log store (DynamoDB); see storage.md",
)
