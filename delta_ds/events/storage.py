"""Events of storage: commits that are not safe, files that could not be deleted."""

from __future__ import annotations

from delta_ds.events.record import Event

COMMIT_LEFT_TO_RECOVERY = Event.warning(
    "commit_left_to_recovery table version reason",
    "a commit is in the log, and its entry in the DynamoDB table does not say so; the next reader or writer notes it",
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
    "files that a command was to delete stay: they lie outside of the table or behind a link, or are not called as"
    " files of the kind that it owns; `path` is one of them",
    "look where the path leads and who put it there; delete it yourself if it is to go",
)
FILE_NAME_NOT_UTF8 = Event.warning(
    "file_name_not_utf8 table path",
    "a file below the table's folder has a name that is not UTF-8, and is left out",
    "rename or delete it",
)
COMMIT_REPLACED = Event.warning(
    "commit_replaced table version",
    "a version that this process has seen is another file now: the table was made anew, or a writer that does not put "
    "commits conditionally has written over it, and what it held is lost",
    "have all writers of the table decide commits in one way; see storage.md",
)
DYNAMODB_NOT_LOOKED_FOR = Event.debug(
    "dynamodb_not_looked_for table reason",
    "whether other writers of a table decide commits by DynamoDB could not be found out",
    "nothing",
)
DYNAMODB_WRITERS_FOUND = Event.warning(
    "dynamodb_writers_found table path",
    "other writers decide commits of the table by DynamoDB, and this one does not: old versions of this package and "
    "delta-spark may write over its commits",
    "set the log store DynamoDB here too, or stop the others from using it; see storage.md",
)
FOLDER_NOT_FLUSHED = Event.debug(
    "folder_not_flushed path reason",
    "the folder of a new file could not be made durable",
    "nothing, unless the machine loses power",
)
LINK_NOT_FOLLOWED = Event.warning(
    "link_not_followed table path",
    "a folder below the table's folder is a link: what is behind it is not listed, so that no command deletes it",
    "look after the files behind it yourself, or put a folder in its place",
)
OTHER_COMMIT_IN_PLACE = Event.warning(
    "other_commit_in_place table version",
    "a commit that DynamoDB has decided found another one in its place: some writer of the table does not use "
    "DynamoDB. The one in place counts, and a writer of this package commits again after it",
    "have all writers of the table decide commits in one way; see storage.md",
)
PROBE_LEFT_BEHIND = Event.warning(
    "probe_left_behind path reason",
    "the file by which a store was tried out could not be deleted",
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
    "the server does not know conditional puts, so DynamoDB alone decides commits, and a writer that does not use it "
    "is written over",
    "have all writers of the table use DynamoDB",
)
UNSAFE_COMMIT = Event.warning(
    "unsafe_commit path reason",
    "the file system has no hard links: a commit is made by a rename, and two writers at once may "
    "overwrite each other",
    "have one writer, or put the table elsewhere",
)
UNSAFE_COMMITS = Event.warning(
    "unsafe_commits table reason",
    "the store cannot create a file only where none is: two writers at once may overwrite each "
    "other's commits",
    "have one writer, or name a log store (DynamoDB); see storage.md",
)
