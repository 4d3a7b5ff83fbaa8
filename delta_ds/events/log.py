"""Events of `_delta_log`: checkpoints, checksums, clean-up, the cache of snapshots."""

from __future__ import annotations

from delta_ds.events.record import Event

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
