"""Events of commits: conflicts, lost answers, what follows a commit, files that are left."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

COMMIT_FOUND_AFTER_LOST_ANSWER = Event(
    "commit_found_after_lost_answer", logging.WARNING, ("table", "version"),
    "the answer to a commit was lost, and the log has the commit",
    "nothing",
)  # fmt: skip
COMMIT_REBASED = Event(
    "commit_rebased", logging.INFO, ("table", "version", "winner"),
    "another commit came first and does not contradict this one, which is tried again on top of it",
    "nothing",
)  # fmt: skip
COMMIT_UNCONFIRMED = Event(
    "commit_unconfirmed", logging.WARNING, ("table", "version", "attempt"),
    "it is not known whether a request to commit worked; the log is asked",
    "look at the store or the network if it comes often",
)  # fmt: skip
CONFLICT_CHECK_WIDENED = Event(
    "conflict_check_widened", logging.WARNING, ("table", "predicate", "reason"),
    "a predicate could not be evaluated on what another commit added; all of it counts as read",
    "nothing; conflicts may be told that are none",
)  # fmt: skip
CREATE_OR_REPLACE_KEPT = Event(
    "create_or_replace_kept", logging.WARNING, ("table", "version"),
    "a table that was to be created is there with the same description, and stays as it is",
    "nothing",
)  # fmt: skip
MIXED_DATA_CHANGE = Event(
    "mixed_data_change", logging.WARNING, ("table", "operation"),
    "some file actions of a commit change rows and others only rearrange them",
    "set `dataChange` alike in all actions of a commit",
)  # fmt: skip
PROPERTY_PASSED_OVER = Event(
    "property_passed_over", logging.WARNING, ("table", "property", "version"),
    "a table property is given to a write of a table that is there, and has no effect",
    "set it with `DeltaTable.setProperties` or ALTER TABLE, or leave it out",
)  # fmt: skip
ORPHAN_FILES_LEFT = Event(
    "orphan_files_left", logging.WARNING, ("table", "reason", "folder"),
    "files of a write that failed could not be deleted",
    "VACUUM deletes them after the retention",
)  # fmt: skip
POST_COMMIT_FAILED = Event(
    "post_commit_failed", logging.WARNING, ("table", "version", "step", "reason"),
    "something that follows a commit failed (`step`: checksum, checkpoint, clean-up, manifests); the "
    "commit stands",
    "see to the reason; `checkpoint()` and `generate()` do what was left out",
)  # fmt: skip
READ_PREDICATE_WIDENED = Event(
    "read_predicate_widened", logging.WARNING, ("predicate", "reason"),
    "a predicate that was read is not understood by conflict checks; the whole table counts as read",
    "nothing; conflicts may be told that are none",
)  # fmt: skip
STAGED_FILES_KEPT = Event(
    "staged_files_kept", logging.WARNING, ("table", "outcome", "error"),
    "files of a write stay, as a version may name them: its outcome is not known",
    "look at the history; VACUUM deletes them if no version names them",
)  # fmt: skip
