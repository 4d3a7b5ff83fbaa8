"""Events of commits: conflicts, lost answers, coordinators, what follows a commit, files that are left."""

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
