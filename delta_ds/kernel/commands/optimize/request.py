"""What an OPTIMIZE is asked to do, and the file sizes it aims at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.value_types import parse_boolean, parse_size
from delta_ds.kernel.format.options import settings
from delta_ds.kernel.format.options.session_facts import CODEC
from delta_ds.records import dataclass, field, replace

COMPACT = "compact"
ZORDER = "zorder"
FULL = "full"
PURGE = "purge"
RETYPE = "retype"
UNMAP = "unmap"
UPGRADE = "upgrade"
# Kinds that rewrite each file that holds something, in the order of its rows, and nothing else.
REORG = frozenset([PURGE, RETYPE, UNMAP, UPGRADE])


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError("it is a number from 0 to 1")
    return share


def _size(text: str) -> int:
    return 0 if text.strip() == "0" else parse_size(text)


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """What a session says of an OPTIMIZE: sizes in bytes, with delta-spark's defaults, and the codec.

    Attributes
    ----------
    min_file_size
        Smaller files are candidates.
    max_file_size
        What files shall come to; None: the table's `delta.targetFileSize`, else 1 GiB.
    max_deleted_rows_ratio
        Files with a larger share of deleted rows are candidates whatever their size.
    min_cube_size, target_cube_size
        Files clustered together are left alone once they have the first, and gathered up to the second.
    check_statistics
        Whether columns to order by must have statistics.
    compression
        The codec of new files; None: the table's.

    Source: delta-spark, `DeltaSQLConf`.
    """

    min_file_size: int = 1 << 30
    max_file_size: int | None = None
    max_deleted_rows_ratio: float = 0.05
    min_cube_size: int = 100 << 30
    target_cube_size: int = 150 << 30
    check_statistics: bool = True
    compression: str | None = None


# Session setting: the attribute, how its text is read.
SETTINGS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    settings.OPTIMIZE_MIN_FILE_SIZE.full_name: ("min_file_size", _size),
    settings.OPTIMIZE_MAX_FILE_SIZE.full_name: ("max_file_size", _size),
    settings.OPTIMIZE_MAX_DELETED_ROWS_RATIO.full_name: ("max_deleted_rows_ratio", _share),
    settings.CLUSTERING_MIN_CUBE_SIZE.full_name: ("min_cube_size", _size),
    settings.CLUSTERING_TARGET_CUBE_SIZE.full_name: ("target_cube_size", _size),
    settings.ZORDER_CHECK_STATISTICS.full_name: ("check_statistics", parse_boolean),
    CODEC: ("compression", str),
}


def settings_of(configuration: Mapping[str, str]) -> OptimizeSettings:
    """The settings that a session has, by delta-spark's names; others count as not set.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    values: dict[str, Any] = {}
    for name, (attribute, parse) in SETTINGS.items():
        text = configuration.get(name)
        if text is None:
            continue
        try:
            values[attribute] = parse(text)
        except ValueError as error:
            raise InvalidOptionError(
                f"the session setting {name} cannot be {text!r}: {error}", parameters={"setting": name}
            ) from error
    return OptimizeSettings(**values)


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """The kind, predicate, columns and sizes of an OPTIMIZE. Can be pickled.

    Attributes
    ----------
    kind
        `compact` (clustered tables are clustered), `zorder`, `full` (cluster all files anew), `purge` (rewrite
        every file that has deleted rows), `retype` (every file with values of an older, narrower type), `unmap`
        (all files, under the names of the columns: the table loses its column mapping) or `upgrade` (every file
        that was not written by the table's version of Iceberg compatibility).
    where
        Predicates on partition columns, as Spark SQL; all must hold.
    columns
        What to order by, as in Spark SQL.
    settings
        See `OptimizeSettings`.
    timezone
        The session time zone, in which predicates are meant.
    auto
        Whether a write started this.
    mode_property
        What `unmap` leaves as `delta.columnMapping.mode`; None for nothing.
    partitions
        Only these partitions, as `partitionValues` of the log has them; None for any.
    """

    kind: str = COMPACT
    where: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    settings: OptimizeSettings = field(default_factory=OptimizeSettings)
    timezone: str = "UTC"
    auto: bool = False
    mode_property: str | None = None
    partitions: tuple[Mapping[str, str | None], ...] | None = None

    def with_settings(self, **changes: Any) -> OptimizeRequest:
        """The same request with other sizes."""
        from dataclasses import fields

        names = {f.name for f in fields(OptimizeSettings)}
        assert names.issuperset(changes)
        return replace(self, settings=replace(self.settings, **changes))
