"""Conditions of options of reads and writes, and of session settings."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import ChangeDataError, InvalidOptionError, UnsupportedOperationError

CLUSTER_BY_WITH_PARTITIONED_BY = ErrorCondition(
    "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
    UnsupportedOperationError,
    "42613",
)
INVALID_CONF_VALUE_TYPE_MISMATCH = ErrorCondition(
    "INVALID_CONF_VALUE.TYPE_MISMATCH",
    InvalidOptionError,
    "22022",
    family="argument",
)
INVALID_TIMESTAMP_FORMAT = ErrorCondition("DELTA_INVALID_TIMESTAMP_FORMAT", InvalidOptionError, "22007")
MULTIPLE_CDC_BOUNDARY = ErrorCondition("DELTA_MULTIPLE_CDC_BOUNDARY", InvalidOptionError, "42614")
NO_START_FOR_CDC_READ = ErrorCondition("DELTA_NO_START_FOR_CDC_READ", ChangeDataError, "42601")
ONEOF_IN_TIMETRAVEL = ErrorCondition(
    "DELTA_ONEOF_IN_TIMETRAVEL",
    InvalidOptionError,
    "42601",
    family="argument",
)
REGEX_OPT_SYNTAX_ERROR = ErrorCondition(
    "DELTA_REGEX_OPT_SYNTAX_ERROR",
    InvalidOptionError,
    "2201B",
    family="argument",
)
REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE = ErrorCondition(
    "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
    InvalidOptionError,
    "42613",
    family="argument",
)
STARTING_VERSION_AND_TIMESTAMP_BOTH_SET = ErrorCondition(
    "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
    InvalidOptionError,
    "42613",
    family="argument",
)
TIMESTAMP_INVALID = ErrorCondition("DELTA_TIMESTAMP_INVALID", InvalidOptionError, "42816")
TIME_TRAVEL_INVALID_BEGIN_VALUE = ErrorCondition(
    "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
    InvalidOptionError,
    "42604",
    family="argument",
)
UNSUPPORTED_OUTPUT_MODE = ErrorCondition("DELTA_UNSUPPORTED_OUTPUT_MODE", UnsupportedOperationError, "0AKDC")
UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS = ErrorCondition(
    "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
    InvalidOptionError,
    "42613",
)
UNSUPPORTED_TIME_TRAVEL_VIEWS = ErrorCondition(
    "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
    InvalidOptionError,
    "0AKDC",
)
