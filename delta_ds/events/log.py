"""Events of `_delta_log`: checkpoints, checksums, clean-up, the cache of snapshots."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

CACHE_ENTRY_IGNORED = Event(
    "cache_entry_ignored", logging.WARNING, ("file", "reason"),
    "a file of the cache could not be read, and the log was read instead",
    "nothing; the file is replaced",
)  # fmt: skip
CACHE_OFF = Event(
    "cache_off", logging.WARNING, ("folder", "reason"),
    "the folder of cached snapshots cannot be used; every process reads logs from the start",
    "make the folder one of this user alone (0700), or set `DELTA_DS_CACHE` to another one, or to "
    "`off`",
)  # fmt: skip
CACHE_SIZE_IGNORED = Event(
    "cache_size_ignored", logging.WARNING, ("value",),
    "`DELTA_DS_CACHE_SIZE` is no number of bytes; the default holds",
    "correct the variable",
)  # fmt: skip
CACHE_WRITE_FAILED = Event(
    "cache_write_failed", logging.WARNING, ("folder", "reason"),
    "a snapshot was not put into the cache",
    "look at the disk; reads are right, and slower",
)  # fmt: skip
CHECKPOINT_NOT_RELIED_ON = Event(
    "checkpoint_not_relied_on", logging.WARNING, ("table", "version", "reason"),
    "log clean-up keeps files, as the checkpoint that would replace them cannot be read",
    "write a new checkpoint by `checkpoint()`",
)  # fmt: skip
CHECKPOINT_PASSED_OVER = Event(
    "checkpoint_passed_over", logging.WARNING, ("table", "version", "reason"),
    "a checkpoint cannot be read; an older one and the commits since serve",
    "write a new one by `checkpoint()`; `fsck` tells what is wrong with the old one",
)  # fmt: skip
CHECKPOINT_READ_ANEW = Event(
    "checkpoint_read_anew", logging.INFO, ("table", "reason"),
    "a checkpoint was written again or deleted since it was read; what was still needed of it is read"
    " from what the log holds now",
    "nothing; where it comes often, write checkpoints less often",
)  # fmt: skip
CHECKPOINT_WRITTEN = Event(
    "checkpoint_written", logging.INFO, ("table", "version", "actions", "bytes", "files"),
    "a checkpoint was written",
    "nothing",
)  # fmt: skip
CHECKSUM_EXISTS = Event(
    "checksum_exists", logging.DEBUG, ("table", "version"),
    "the checksum file of a version is there already, and stays",
    "nothing",
)  # fmt: skip
CHECKSUM_MISMATCH = Event(
    "checksum_mismatch", logging.WARNING, ("table", "version", "files", "recorded_files", "bytes", "recorded_bytes"),
    "the files or bytes of a version are not those that its checksum file says",
    "`fsck` tells what differs; a writer has written a wrong checksum, or the log was changed by hand",
)  # fmt: skip
CHECKSUM_SKIPPED = Event(
    "checksum_skipped", logging.DEBUG, ("table", "version"),
    "no checksum file was written, as it would take a replay of the log; the next checkpoint starts a"
    " new series",
    "nothing",
)  # fmt: skip
CHECKSUM_UNREADABLE = Event(
    "checksum_unreadable", logging.WARNING, ("table", "file", "reason"),
    "the checksum file of a version cannot be read, and does not count",
    "delete it if it comes again; nothing else needs it",
)  # fmt: skip
KEPT_STATISTICS_IGNORED = Event(
    "kept_statistics_ignored", logging.WARNING, ("value",),
    "`DELTA_DS_KEPT_STATISTICS` is no number of bytes; the default holds",
    "correct the variable",
)  # fmt: skip
LAST_CHECKPOINT_CHECKSUM_MISMATCH = Event(
    "last_checkpoint_checksum_mismatch", logging.WARNING, ("table",),
    "`_last_checkpoint` does not have the checksum that it says; the log is listed instead",
    "nothing; the next checkpoint replaces it",
)  # fmt: skip
LAST_CHECKPOINT_NOT_WRITTEN = Event(
    "last_checkpoint_not_written", logging.WARNING, ("table", "version", "reason"),
    "`_last_checkpoint` could not be written; readers list the log instead",
    "look at the permissions of the log's folder",
)  # fmt: skip
LAST_CHECKPOINT_UNREADABLE = Event(
    "last_checkpoint_unreadable", logging.WARNING, ("table", "reason"),
    "`_last_checkpoint` is no JSON of the right form; the log is listed instead",
    "nothing; the next checkpoint replaces it",
)  # fmt: skip
LOG_CLEANED = Event(
    "log_cleaned", logging.INFO, ("table", "before_version", "files"),
    "files of the log that no version within the retention needs were deleted",
    "nothing",
)  # fmt: skip
LOG_FILE_PARSED_SLOWLY = Event(
    "log_file_parsed_slowly", logging.INFO, ("path",),
    "a file of the log has JSON of an unusual form, which is read line by line",
    "nothing; a checkpoint makes it quick",
)  # fmt: skip
NO_CLASSIC_CHECKPOINT = Event(
    "no_classic_checkpoint", logging.INFO, ("table", "version"),
    "log clean-up leaves no classic checkpoint for older readers, as the newest checkpoint is one in "
    "JSON",
    "nothing, unless readers without V2 checkpoints use the table",
)  # fmt: skip
SIDECARS_KEPT = Event(
    "sidecars_kept", logging.WARNING, ("table", "reason"),
    "sidecar files of checkpoints were not deleted, as it is not known which are needed",
    "nothing; the next clean-up tries again",
)  # fmt: skip
STREAM_GIVEN_UP = Event(
    "stream_given_up", logging.WARNING, ("table", "reason"),
    "a checkpoint could not be filtered part by part; the whole log is replayed",
    "nothing, unless it comes with `checkpoint_passed_over`",
)  # fmt: skip
TAGS_PARSED_SLOWLY = Event(
    "tags_parsed_slowly", logging.INFO, ("path",),
    "a commit has tags of an unusual form, which are read row by row",
    "nothing",
)  # fmt: skip
