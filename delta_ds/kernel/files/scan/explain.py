"""Tell for each live file whether a scan reads it, and by which rule: in one table what `Pruning` holds by rule."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.base.card import Card, CardTable, Share, Shown, size_text, table_of
from delta_ds.kernel.files.scan.skipping import Pruning, Reason, row_numbers
from delta_ds.kernel.format.expressions.arrays import scalar_of
from delta_ds.kernel.format.schema.types import STRING
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.live_files import LiveFiles

_NO_REASON = "may match"
_MOST_LINES = 40


@dataclass(frozen=True)
class Explanation(Shown):
    """What a scan reads and skips, and why; made by `Scan.explain`.

    It is the table `files` with counts: what it does not have itself is asked of that table, and whatever takes Arrow
    data takes it.

    Attributes
    ----------
    table, version
        What is scanned.
    predicate
        As text; None for none.
    files
        A row a live file, in log order: `path` string as in the log, `kept` bool, and `rule` string. For a skipped
        file that is the rule that dropped it; for a kept one the first thing that kept better knowledge from deciding,
        or `may match`.
    sizes
        Of the same files, bytes.
    rules
        The rules in the order in which they apply, those of kept files behind them.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> explained = DeltaLog("/data/orders").snapshot().scan("country = 'DE'").explain()
    >>> explained.num_read, explained.num_files, explained.files["kept"].to_pylist()
    (2, 4, [True, False, True, False])
    """

    table: str
    version: int
    predicate: str | None
    files: pa.Table
    sizes: pa.Int64Array
    rules: tuple[str, ...]

    @property
    def num_files(self) -> int:
        """How many files are live."""
        return int(self.files.num_rows)

    @property
    def num_read(self) -> int:
        """How many of them the scan reads."""
        return int(pc.sum(self.files["kept"]).as_py() or 0)

    @property
    def size(self) -> int:
        """The bytes of all live files."""
        return int(pc.sum(self.sizes).as_py() or 0)

    @property
    def size_read(self) -> int:
        """The bytes of the files that the scan reads."""
        return int(pc.sum(self.sizes.filter(self.files["kept"].combine_chunks())).as_py() or 0)

    @cached_property
    def steps(self) -> pa.Table:
        """What each rule skipped, in order, and then why the others are read.

        Returns
        -------
        pyarrow.Table
            `rule` string, `kept` bool, `files` and `bytes` int64: their sums are those of all live files.
        """
        table = self.files.select(["kept", "rule"]).append_column("size", self.sizes)
        found = table.group_by(["kept", "rule"]).aggregate([("size", "count"), ("size", "sum")])
        place = pc.index_in(found["rule"], value_set=texts(self.rules))
        found = found.append_column("place", place)
        found = found.sort_by([("kept", "ascending"), ("place", "ascending")])
        wanted = {"rule": "rule", "kept": "kept", "size_count": "files", "size_sum": "bytes"}
        return found.select(list(wanted)).rename_columns(list(wanted.values()))

    def __str__(self) -> str:
        lines = [f"{self.num_read} of {self.num_files} files to read"]
        lines += [
            f"  {'kept' if step['kept'] else 'skipped'} {step['files']}: {step['rule']}"
            for step in self.steps.slice(0, _MOST_LINES).to_pylist()
        ]
        if self.steps.num_rows > _MOST_LINES:
            lines.append(f"  and {self.steps.num_rows - _MOST_LINES} other rules")
        return "\n".join(lines)

    def __repr__(self) -> str:
        where = f" where {self.predicate:.200}" if self.predicate is not None else ""
        return f"{self.table} version {self.version}{where}\n{self}"

    def _card(self) -> Card:
        total = self.num_files or 1
        facts = (
            ("predicate", self.predicate),
            ("files", f"{self.num_read:,} of {self.num_files:,} to read"),
            ("bytes", f"{size_text(self.size_read)} of {size_text(self.size)} to read"),
        )
        return Card(f"Scan of {self.table}, version {self.version}", facts, (self._steps_table(total),))

    def _steps_table(self, total: int) -> CardTable:
        steps = self.steps.slice(0, _MOST_LINES).to_pylist()
        found = table_of(
            ("files", "bytes", "", "why", ""),
            steps,
            lambda s: (
                s["files"],
                size_text(s["bytes"]),
                "read" if s["kept"] else "skipped",
                s["rule"],
                Share(s["files"] / total),
            ),
        )
        return replace(found, left_out=self.steps.num_rows - len(found.rows))

    def __len__(self) -> int:
        return self.num_files

    def __getitem__(self, key: Any) -> Any:
        return self.files[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "files":
            raise AttributeError(f"an explanation has no attribute {name!r}")
        return getattr(self.files, name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface, of `files`."""
        return self.files.__arrow_c_stream__(requested_schema)


def explain(
    files: LiveFiles, pruning: Pruning, *, table: str = "", version: int = 0, predicate: str | None = None
) -> Explanation:
    """Explain a pruning, file by file.

    Parameters
    ----------
    table, version, predicate
        What the explanation is of, in words.
    """
    kept = pc.is_in(row_numbers(files.num_rows), pruning.rows)
    # Later rules overwrite earlier ones, and the first reason is the one to name.
    rule = pa.repeat(scalar_of(_NO_REASON, STRING), files.num_rows)
    for reason in (*reversed(pruning.undecided), *reversed(pruning.reasons)):
        rule = _with_rule(rule, reason)
    path = files.table["path"]
    named = pa.Table.from_arrays([path, kept, rule], names=["path", "kept", "rule"])
    rules = dict.fromkeys([each.rule for each in (*pruning.reasons, *pruning.undecided)] + [_NO_REASON])
    return Explanation(table, version, predicate, named, files.table["size"].combine_chunks(), tuple(rules))


def _with_rule(rule: pa.StringArray, reason: Reason) -> pa.StringArray:
    named = pc.is_in(row_numbers(len(rule)), reason.rows)
    return pc.if_else(named, scalar_of(reason.rule, STRING), rule)
