"""Skipping as a filter that other processes can be given, for the files of a part of a checkpoint.

What it keeps of all parts, then of the files of the commits after the checkpoint, is what `prune` keeps of all live
files, in the same order: skipping looks at one file at a time.

Source: PROTOCOL.md, "Per-file Statistics".
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from delta_ds.kernel.files.scan.skipping import SkippingRules, skipping_rules
from delta_ds.kernel.format.expressions.tree import Expression, columns
from delta_ds.kernel.format.schema.types import DOUBLE, FLOAT

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.values.statistics import FilesToPrune
    from delta_ds.kernel.log.live_files import FileFilter
    from delta_ds.kernel.log.snapshot import Snapshot


def part_filter(version: Snapshot, predicate: Expression | None, timezone: str | None) -> FileFilter | None:
    """The files that may hold rows for which a predicate is true, as a filter that can be pickled.

    Parameters
    ----------
    predicate
        Bound to the schema of the version; None for all live files.
    timezone
        See `prune`.
    """
    if predicate is None:
        return None
    floats = any(c.type in (FLOAT, DOUBLE) for c in columns(predicate))
    rules = skipping_rules(
        predicate,
        schema=version.schema,
        partition_columns=version.partition_columns,
        mapping_mode=version.mapping_mode,
        timezone=timezone,
        counts_nan=functools.partial(bool, floats and version.statistics_count_nan),
    )
    return functools.partial(_kept, rules)


def _kept(rules: SkippingRules, files: FilesToPrune) -> pa.Int64Array:
    return rules.apply(files).rows
