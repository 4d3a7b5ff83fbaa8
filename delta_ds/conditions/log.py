"""Conditions of the transaction log, and of time travel in it."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    ChangeDataError,
    CorruptLogFileError,
    LogError,
    SchemaError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
)

CHECKSUM_MISMATCH = ErrorCondition(
    "DELTA_CHECKSUM_MISMATCH",
    LogError,
    "XXKDS",
    "the checksum file of version {version} of {table} contradicts the log: its protocol or metadata is "
    "not what the commits say. Delete the .crc file",
)
LOG_FILE_NOT_FOUND = ErrorCondition(
    "DELTA_LOG_FILE_NOT_FOUND",
    LogError,
    "42K03",
    "could not find any commit file for version {wanted} of {table}: its checkpoint is there, but the "
    "commit itself was deleted; read a newer version",
    family="state",
)
CHECKPOINT_NOT_FOUND_AGAIN = LOG_FILE_NOT_FOUND.also(
    "the checkpoint that was read of {table} is gone or was written again, and the log does not hold that version any "
    "more, so that the statistics of its files cannot be read: {reason}. Read the table again, or a newer version",
)
LOG_FILE_OF_CHANGES_NOT_FOUND = LOG_FILE_NOT_FOUND.also(
    "the log file of version {version} of {table} is gone, so changes from version {start} cannot be "
    "read; the first version left is {earliest}",
    error=ChangeDataError,
)
MISSING_COMMIT_INFO = ErrorCondition(
    "DELTA_MISSING_COMMIT_INFO",
    CorruptLogFileError,
    "KD004",
    "version {version} of {table} has no inCommitTimestamp in its commitInfo, although in-commit "
    "timestamps are enabled",
    family="state",
)
MISSING_COMMIT_TIMESTAMP = ErrorCondition(
    "DELTA_MISSING_COMMIT_TIMESTAMP",
    CorruptLogFileError,
    "KD004",
    MISSING_COMMIT_INFO.text,
    family="state",
)
MISSING_PART_COLUMN = ErrorCondition(
    "DELTA_MISSING_PART_COLUMN",
    SchemaError,
    "XXKDS",
    "version {version} of {table} is partitioned by {column!r}, which is not in its schema: {columns:list}",
)
TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION = ErrorCondition(
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
    TimestampOutOfRangeError,
    "42816",
    "The timestamp {userTimestamp} is before the earliest version of {table} that can be reached, "
    "committed at {commitTs}. Use a timestamp at or after {commitTs}",
    parameters=("userTimestamp", "commitTs", "timestampString"),
)
UNSUPPORTED_FORMAT = ErrorCondition(
    "DELTA_UNSUPPORTED_FORMAT",
    UnsupportedFeatureError,
    "0AKDC",
    "version {version} of {table} stores its data as {provider!r}; only parquet is defined",
)
