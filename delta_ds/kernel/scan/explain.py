"""Tell for each live file whether a scan reads it, and by which rule.

`explain` answers in one table what `Pruning` holds by rule; `summary` counts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.expressions.arrays import scalar_of
from delta_ds.kernel.scan.skipping import Pruning, Reason, row_numbers
from delta_ds.kernel.schema.types import STRING

if TYPE_CHECKING:
    from delta_ds.kernel.log.live_files import LiveFiles

_NO_REASON = "may match"


def explain(files: LiveFiles, pruning: Pruning) -> pa.Table:
    """Explain a pruning, file by file.

    Returns
    -------
    pyarrow.Table
        A row a live file, in the order of `files.table`: `path` string as in the log, `kept` bool, and `rule`
        string. For a skipped file that is the rule that dropped it; for a kept one the first thing that kept
        better knowledge from deciding, or `may match`.
    """
    kept = pc.is_in(row_numbers(files.num_rows), pruning.rows)
    # Later rules overwrite earlier ones, and the first reason is the one to name.
    rule = pa.repeat(scalar_of(_NO_REASON, STRING), files.num_rows)
    for reason in (*reversed(pruning.undecided), *reversed(pruning.reasons)):
        rule = _with_rule(rule, reason)
    path = files.table["path"]
    return pa.Table.from_arrays([path, kept, rule], names=["path", "kept", "rule"])


def _with_rule(rule: pa.StringArray, reason: Reason) -> pa.StringArray:
    named = pc.is_in(row_numbers(len(rule)), reason.rows)
    return pc.if_else(named, scalar_of(reason.rule, STRING), rule)


def summary(files: LiveFiles, pruning: Pruning) -> str:
    """Count the files a scan reads and skips, a line for each rule that skipped some.

    Differs: a kept file may stand in several lines of what could not be decided, so those do not add up.
    """
    total, read = files.num_rows, len(pruning.rows)
    lines = [f"{read} of {total} files to read"]
    lines += [f"  skipped {len(reason.rows)}: {reason.rule}" for reason in pruning.reasons]
    lines += [f"  kept {len(reason.rows)}: {reason.rule}" for reason in pruning.undecided]
    return "\n".join(lines)
