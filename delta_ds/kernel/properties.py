"""Every `delta.*` table property as one record: default, check, and what acts on it.

A table may carry any property (`value_of` looks only at the one asked for); setting one is checked (`check`).

Source: PROTOCOL.md, "Table Properties"; delta-spark, `DeltaConfig.scala`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from delta_ds.exceptions import InvalidOptionError

PREFIX = "delta."
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."

_INTERVAL_UNITS = {
    "week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1), "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1), "microsecond": timedelta(microseconds=1),
}  # fmt: skip
_SIZE_UNITS = ("", "k", "m", "g", "t", "p")
_SIZE = re.compile(r"([0-9]+)\s*(|b|[kmgtp]b?)", re.IGNORECASE)
_INTERVAL_PART = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]{1,9})?)\s+([a-z]+)\s*")


@dataclass(frozen=True, slots=True)
class TableProperty:
    """One table property.

    Attributes
    ----------
    name
        In full, beginning with `delta.`; looked up ignoring case, stored in this spelling.
    default
        What holds without it, as text; None: nothing.
    parse
        Text to value; raises `ValueError` saying what would be right.
    acts_on
        `read`, `write` or `both`; `nothing`: kept without effect; `refused`: cannot be set.
    settable
        False for what only the engine itself may write.
    """

    name: str
    default: str | None
    parse: Callable[[str], Any]
    acts_on: Literal["read", "write", "both", "nothing", "refused"]
    settable: bool = True


def parse_boolean(text: str) -> bool:
    """`true` or `false` in any case; raises `ValueError` otherwise."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("it is true or false")
    return word == "true"


def parse_interval(text: str) -> timedelta:
    """A duration such as `interval 1 week` or `2 days 12 hours`.

    Raises
    ------
    ValueError
        Months and years (they have no fixed length), negative durations, anything else.
    """
    rest = re.sub(r"^\s*interval\s+", "", text.lower())
    total, at = timedelta(), 0
    while at < len(rest):
        match = _INTERVAL_PART.match(rest, at)
        unit = _INTERVAL_UNITS.get(match[2].removesuffix("s")) if match else None
        if match is None or unit is None:
            raise ValueError("it is an interval such as '30 days' or '2 weeks', without months or years")
        try:
            total += float(match[1]) * unit if "." in match[1] else int(match[1]) * unit
        except OverflowError:
            raise ValueError("it is an interval of less than a billion days") from None
        at = match.end()
    if not rest.strip() or total < timedelta():
        raise ValueError("it is an interval of zero or more, such as '30 days'")
    return total


def parse_size(text: str) -> int:
    """A size in bytes, or with a unit as in `128m` or `1gb`; raises `ValueError` otherwise."""
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * 1024 ** _SIZE_UNITS.index(match[2].lower().rstrip("b")) if match else 0
    if size <= 0:
        raise ValueError("it is a size in bytes, or with a unit as in 128m")
    return size


def _integer(low: int, high: int | None = None) -> Callable[[str], int]:
    def parse(text: str) -> int:
        wanted = f"it is a whole number from {low}" + ("" if high is None else f" to {high}")
        try:
            number = int(text)
        except ValueError:
            raise ValueError(wanted) from None
        if number < low or (high is not None and number > high):
            raise ValueError(wanted)
        return number

    return parse


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        found = next((word for word in words if word.lower() == text.strip().lower()), None)
        if found is None:
            raise ValueError(f"it is one of {', '.join(words)}")
        return found

    return parse


def _matching(pattern: str, wanted: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text.strip(), re.IGNORECASE):
            raise ValueError(wanted)
        return text.strip()

    return parse


_boolean = parse_boolean
_codec = _one_of("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "none", "uncompressed")
_parquet_version = _matching(r"1\.0\.0|2\.[0-9]+\.[0-9]+", "it is 1.0.0 or 2.x.y")

PROPERTIES: dict[str, TableProperty] = {
    p.name: p
    for p in (
        # The protocol
        TableProperty("delta.minReaderVersion", None, _integer(1, 3), "write"),
        TableProperty("delta.minWriterVersion", None, _integer(1, 7), "write"),
        TableProperty("delta.ignoreProtocolDefaults", "false", _boolean, "write"),
        # What writers enforce and record
        TableProperty("delta.appendOnly", "false", _boolean, "write"),
        TableProperty("delta.isolationLevel", "WriteSerializable",
                      _one_of("Serializable", "WriteSerializable"), "write"),
        TableProperty("delta.enableChangeDataFeed", "false", _boolean, "both"),
        TableProperty("delta.enableDeletionVectors", "false", _boolean, "write"),
        TableProperty("delta.columnMapping.mode", "none", _one_of("none", "name", "id"), "both"),
        TableProperty("delta.columnMapping.maxColumnId", "0", _integer(0), "write", settable=False),
        TableProperty("delta.enableRowTracking", "false", _boolean, "both"),
        TableProperty("delta.rowTrackingSuspended", "false", _boolean, "write"),
        TableProperty("delta.rowTracking.materializedRowIdColumnName", None, str, "both", settable=False),
        TableProperty("delta.rowTracking.materializedRowCommitVersionColumnName", None, str, "both",
                      settable=False),
        TableProperty("delta.enableTypeWidening", "false", _boolean, "write"),
        TableProperty("delta.enableVariantShredding", "false", _boolean, "write"),
        TableProperty("delta.enableInCommitTimestamps", "false", _boolean, "both"),
        TableProperty("delta.inCommitTimestampEnablementVersion", None, _integer(0), "both", settable=False),
        TableProperty("delta.inCommitTimestampEnablementTimestamp", None, _integer(0), "both",
                      settable=False),
        # Data files
        TableProperty("delta.parquet.compression.codec", "zstd", _codec, "write"),
        TableProperty("delta.parquet.format.version", "1.0.0", _parquet_version, "write"),
        TableProperty("delta.dataSkippingNumIndexedCols", "32", _integer(-1), "write"),
        TableProperty("delta.dataSkippingStatsColumns", None, str, "write"),
        TableProperty("delta.dataSkippingStringPrefixLength", "32", _integer(1), "write"),
        TableProperty("delta.randomizeFilePrefixes", "false", _boolean, "write"),
        TableProperty("delta.randomPrefixLength", "2", _integer(1), "write"),
        TableProperty("delta.targetFileSize", None, parse_size, "write"),
        TableProperty("delta.tuneFileSizesForRewrites", None, _boolean, "nothing"),
        TableProperty("delta.writePartitionColumnsToParquet", "false", _boolean, "write"),
        TableProperty("delta.enableMaterializePartitionColumnsFeature", "false", _boolean, "write"),
        TableProperty("delta.autoOptimize", None, _boolean, "nothing"),
        TableProperty("delta.autoOptimize.optimizeWrite", None, _boolean, "write"),
        TableProperty("delta.autoOptimize.autoCompact", None, _boolean, "write"),
        # The log and its upkeep
        TableProperty("delta.checkpointInterval", "10", _integer(1), "write"),
        TableProperty("delta.checkpointPolicy", "classic", _one_of("classic", "v2"), "write"),
        TableProperty("delta.checkpoint.writeStatsAsJson", "true", _boolean, "write"),
        TableProperty("delta.checkpoint.writeStatsAsStruct", "true", _boolean, "write"),
        TableProperty("delta.checkpointRetentionDuration", "interval 2 days", parse_interval, "write"),
        TableProperty("delta.logRetentionDuration", "interval 30 days", parse_interval, "write"),
        TableProperty("delta.deletedFileRetentionDuration", "interval 1 week", parse_interval, "write"),
        TableProperty("delta.enableExpiredLogCleanup", "true", _boolean, "write"),
        TableProperty("delta.setTransactionRetentionDuration", None, parse_interval, "both"),
        TableProperty("delta.requireCheckpointProtectionBeforeVersion", "0", _integer(0), "write",
                      settable=False),
        TableProperty("delta.dropFeatureTruncateHistory.retentionDuration", "interval 24 hours",
                      parse_interval, "write"),
        TableProperty("delta.compatibility.symlinkFormatManifest.enabled", "false", _boolean, "write"),
        TableProperty("delta.sampleRetentionDuration", "interval 7 days", parse_interval, "nothing"),
        TableProperty("delta.enableFullRetentionRollback", "true", _boolean, "nothing"),
        # Not offered
        TableProperty("delta.enableChangeDataCapture", None, str, "refused"),
        TableProperty("delta.enableIcebergCompatV1", "false", _boolean, "refused"),
        TableProperty("delta.enableIcebergCompatV2", "false", _boolean, "refused"),
        TableProperty("delta.enableIcebergCompatV3", "false", _boolean, "refused"),
        TableProperty("delta.enableIcebergWriterCompatV1", "false", _boolean, "refused"),
        TableProperty("delta.castIcebergTimeType", "false", _boolean, "refused"),
        TableProperty("delta.ignoreIcebergBucketPartition", "false", _boolean, "refused"),
        TableProperty("delta.universalFormat.enabledFormats", None, str, "refused"),
        TableProperty("delta.columnMapping.hasDroppedOrRenamed", None, _boolean, "refused"),
        TableProperty("delta.coordinatedCommits.commitCoordinator-preview", None, str, "refused"),
        TableProperty("delta.coordinatedCommits.commitCoordinatorConf-preview", None, str, "refused"),
        TableProperty("delta.coordinatedCommits.tableConf-preview", None, str, "refused"),
        TableProperty("delta.redirectReaderWriter-preview", None, str, "refused"),
        TableProperty("delta.redirectWriterOnly-preview", None, str, "refused"),
    )
}  # fmt: skip

_BY_LOWER_NAME = {name.lower(): p for name, p in PROPERTIES.items()}


def value_of(properties: Mapping[str, str], name: str) -> Any:
    """The value of a known property in a table's configuration, or its default.

    Raises
    ------
    InvalidOptionError
        The table holds a text that the property does not take.
    KeyError
        `name` is not one of `PROPERTIES`: a mistake in this package.
    """
    known = PROPERTIES[name]
    text = properties.get(name, known.default)
    return None if text is None else _parsed(known, text)


def _parsed(known: TableProperty, text: str) -> Any:
    try:
        return known.parse(text)
    except ValueError as error:
        raise InvalidOptionError(
            f"invalid value {text!r} for table property {known.name}: {error}",
            condition="DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
            parameters={"property": known.name, "value": text},
        ) from error


def check(name: str, value: str) -> str:
    """Check a property that a user wants to set, and return the name to store it under.

    Names without `delta.` are the user's own; `delta.feature.*` and `delta.constraints.*` are checked where
    they are acted upon.

    Raises
    ------
    InvalidOptionError
        An unknown `delta.` name (with the nearest known one), a wrong value, or what cannot be set.
    """
    folded = name.lower()
    if not folded.startswith(PREFIX) or folded.startswith((FEATURE_PREFIX, CONSTRAINT_PREFIX)):
        return name
    known = _BY_LOWER_NAME.get(folded)
    if known is None:
        near = difflib.get_close_matches(folded, _BY_LOWER_NAME, 1)
        hint = f"; did you mean {_BY_LOWER_NAME[near[0]].name}?" if near else ""
        raise InvalidOptionError(
            f"unknown table property {name!r}{hint}",
            condition="DELTA_UNKNOWN_CONFIGURATION",
            parameters={"property": name},
        )
    if known.acts_on == "refused" or not known.settable:
        why = "is set by the engine only" if not known.settable else "asks for what delta_ds does not offer"
        raise InvalidOptionError(
            f"table property {known.name} cannot be set: it {why}",
            condition="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            parameters={"property": known.name},
        )
    _parsed(known, value)
    return known.name
