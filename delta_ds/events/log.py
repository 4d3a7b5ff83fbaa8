"""Events of `_delta_log`: checkpoints, checksums, clean-up, the cache of snapshots; and of commits: conflicts, lost
answers, coordinators, what follows a commit, files that are left.
"""

from __future__ import annotations

from delta_ds.events.record import Event

COMMIT_FOUND_AFTER_LOST_ANSWER = Event.warning(
    "commit_found_after_lost_answer table version",
    "the answer to a commit was lost, and the log has the commit",
    "nothing",
)
COMMIT_REBASED = Event.info(
    "commit_rebased table version winner",
    "another commit came first and does not conflict with this one, which is retried on top of it",
    "nothing",
)
COMMIT_UNCONFIRMED = Event.warning(
    "commit_unconfirmed table version attempt",
    "it is unknown whether a request to commit worked; the log is read to find out",
    "check the store or the network if it happens often",
)
CONFLICT_CHECK_WIDENED = Event.warning(
    "conflict_check_widened table predicate reason",
    "a predicate could not be evaluated on what another commit added; all of it counts as read",
    "nothing; a commit may be refused that does not conflict",
)
CREATE_OR_REPLACE_KEPT = Event.warning(
    "create_or_replace_kept table version",
    "a table that should be created already exists with the same description, and stays unchanged",
    "nothing",
)
MIXED_DATA_CHANGE = Event.warning(
    "mixed_data_change table operation",
    "some file actions of a commit change rows and others only rearrange them",
    "set the same `dataChange` in all actions of a commit",
)
PROPERTY_PASSED_OVER = Event.warning(
    "property_passed_over table property version",
    "a table property was given to a write to an existing table, and has no effect",
    "set it with `DeltaTable.setProperties` or ALTER TABLE, or leave it out",
)
ORPHAN_FILES_LEFT = Event.warning(
    "orphan_files_left table reason folder",
    "files of a write that failed could not be deleted",
    "VACUUM deletes them after the retention",
)
POST_COMMIT_FAILED = Event.warning(
    "post_commit_failed table version step reason",
    "something that follows a commit failed (`step`: checksum, checkpoint, clean-up, manifests); the "
    "commit stands",
    "fix the reason; `checkpoint()` and `generate()` do what was left out",
)
READ_PREDICATE_WIDENED = Event.warning(
    "read_predicate_widened predicate reason",
    "a predicate that was read is not understood by conflict checks; the whole table counts as read",
    "nothing; a commit may be refused that does not conflict",
)
STAGED_FILES_KEPT = Event.warning(
    "staged_files_kept table outcome error",
    "files of a write stay, because a version may name them: the outcome of the commit is unknown",
    "check the history; VACUUM deletes them if no version names them",
)


TOKEN_SENT_IN_CLEAR = Event.warning(
    "token_sent_in_clear url",
    "the token of a catalog is sent to another machine over a connection that is not encrypted",
    "use the server's https address",
)


CACHE_ENTRY_IGNORED = Event.warning(
    "cache_entry_ignored file reason",
    "a file of the cache could not be read, and the log was read instead",
    "nothing; the file is replaced",
)
CACHE_OFF = Event.warning(
    "cache_off folder reason",
    "the folder of cached snapshots cannot be used; every process reads logs from the start",
    "make the folder accessible to this user only (0700), or set `DELTA_DS_CACHE` to another one, or to `off`",
)
CACHE_SIZE_IGNORED = Event.warning(
    "cache_size_ignored value",
    "`DELTA_DS_CACHE_SIZE` is not a number of bytes; the default applies",
    "correct the variable",
)
CACHE_WRITE_FAILED = Event.warning(
    "cache_write_failed folder reason",
    "a snapshot could not be written to the cache",
    "check the disk; reads are correct, but slower",
)
CHECKPOINT_NOT_RELIED_ON = Event.warning(
    "checkpoint_not_relied_on table version reason",
    "the log clean-up keeps files, because the checkpoint that would replace them cannot be read",
    "write a new checkpoint with `checkpoint()`",
)
CHECKPOINT_PASSED_OVER = Event.warning(
    "checkpoint_passed_over table version reason",
    "a checkpoint cannot be read; an older one and the commits since then are used",
    "write a new one with `checkpoint()`; `fsck` reports what is wrong with the old one",
)
CHECKPOINT_READ_ANEW = Event.info(
    "checkpoint_read_anew table reason",
    "a checkpoint was written again or deleted since it was read; the rest is read from the present log",
    "nothing; if it happens often, write checkpoints less often",
)
CHECKPOINT_WRITTEN = Event.info(
    "checkpoint_written table version actions bytes files",
    "a checkpoint was written",
    "nothing",
)
CHECKSUM_EXISTS = Event.debug(
    "checksum_exists table version",
    "the checksum file of a version already exists and is kept",
    "nothing",
)
CHECKSUM_MISMATCH = Event.warning(
    "checksum_mismatch table version files recorded_files bytes recorded_bytes",
    "the number of files or bytes of a version differs from its checksum file",
    "`fsck` reports the difference; a writer wrote a wrong checksum, or the log was changed by hand",
)
CHECKSUM_SKIPPED = Event.debug(
    "checksum_skipped table version",
    "no checksum file was written, because it would need a replay of the log; the next checkpoint starts a new series",
    "nothing",
)
CHECKSUM_UNREADABLE = Event.warning(
    "checksum_unreadable table file reason",
    "the checksum file of a version cannot be read and is ignored",
    "delete it if this is repeated; nothing else needs it",
)
KEPT_STATISTICS_IGNORED = Event.warning(
    "kept_statistics_ignored value",
    "`DELTA_DS_KEPT_STATISTICS` is not a number of bytes; the default applies",
    "correct the variable",
)
LAST_CHECKPOINT_CHECKSUM_MISMATCH = Event.warning(
    "last_checkpoint_checksum_mismatch table",
    "`_last_checkpoint` does not match its checksum; the log is listed instead",
    "nothing; the next checkpoint replaces it",
)
LAST_CHECKPOINT_NOT_WRITTEN = Event.warning(
    "last_checkpoint_not_written table version reason",
    "`_last_checkpoint` could not be written; readers list the log instead",
    "look at the permissions of the log's folder",
)
LAST_CHECKPOINT_UNREADABLE = Event.warning(
    "last_checkpoint_unreadable table reason",
    "`_last_checkpoint` is not valid JSON of the expected form; the log is listed instead",
    "nothing; the next checkpoint replaces it",
)
LOG_CLEANED = Event.info(
    "log_cleaned table before_version files",
    "files of the log that no version within the retention needs were deleted",
    "nothing",
)
LOG_FILE_PARSED_SLOWLY = Event.info(
    "log_file_parsed_slowly path",
    "a file of the log has JSON of an unusual form, which is read line by line",
    "nothing; a checkpoint makes reading quick again",
)
NO_CLASSIC_CHECKPOINT = Event.info(
    "no_classic_checkpoint table version",
    "the log clean-up leaves no classic checkpoint for older readers, because the newest checkpoint is in JSON",
    "nothing, unless readers without V2 checkpoints use the table",
)
SIDECARS_KEPT = Event.warning(
    "sidecars_kept table reason",
    "sidecar files of checkpoints were not deleted, because it is unknown which are needed",
    "nothing; the next clean-up tries again",
)
STREAM_GIVEN_UP = Event.warning(
    "stream_given_up table reason",
    "a checkpoint could not be filtered in parts; the whole log is replayed",
    "nothing, unless `checkpoint_passed_over` is logged too",
)
TAGS_PARSED_SLOWLY = Event.info(
    "tags_parsed_slowly path",
    "a commit has tags of an unusual form, which are read row by row",
    "nothing",
)
