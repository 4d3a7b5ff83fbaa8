"""How the files of a change feed are partitioned: a table may be overwritten with other partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.changes.commit import CHANGE_TYPE
from delta_ds.kernel.log.json_actions import iterate_bodies
from delta_ds.kernel.schema.column_mapping import physical_name
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.data.read.plan import FileSlice
    from delta_ds.kernel.log.commit import Commit
    from delta_ds.kernel.table_state import TableState

Names = tuple[str, ...]


class Partitionings:
    """The partition columns of the files of each commit: what it adds may have others than what it removes.

    Parameters
    ----------
    state
        By whose schema and partition columns the feed is read.
    first
        The partition columns after the first commit.
    commits
        Of the range, in order.

    Attributes
    ----------
    columns
        Physical names of all of them; those of `state` come first.
    """

    def __init__(self, state: TableState, first: Sequence[str], commits: Sequence[Commit]) -> None:
        fields = {field.name: physical_name(field, state.mapping_mode) for field in state.schema}
        self._read = tuple(state.partition_columns)
        self._physical = fields
        self._logical = {physical: name for name, physical in fields.items()}
        # By version: of what it removes, and of what it adds.
        self._of: dict[int, tuple[Names, Names]] = {}
        before: Names | None = None
        after = tuple(first)
        for commit in commits:
            if commit.metadata is not None:
                after = tuple(commit.metadata.partition_columns)
                if before is None:
                    before = self._removed(commit)
            self._of[commit.version] = (after if before is None else before, after)
            before = after
        others = {name for both in self._of.values() for names in both for name in names}
        more = sorted(others.difference(self._read))
        self.columns = tuple(fields.get(name, name) for name in (*self._read, *more))

    def _removed(self, commit: Commit) -> Names | None:
        """The partition columns of the files that a commit removes, as it tells itself; None where it does not."""
        for _, remove in iterate_bodies(commit.data, commit.where, "remove"):
            values = remove.get("partitionValues")
            if values is not None:
                return tuple(self._logical.get(key, key) for key in values)
        return None

    def fitted(self, version: int, slices: list[FileSlice]) -> list[FileSlice]:
        """The slices of a commit, made with `columns`, as the plan of the feed reads them."""
        removed, added = self._of[version]
        return [
            self._fitted(piece, removed if dict(piece.constants).get(CHANGE_TYPE) == "delete" else added)
            for piece in slices
        ]

    def _fitted(self, piece: FileSlice, names: Names) -> FileSlice:
        values = dict(zip(self.columns, piece.partition_values, strict=True))
        names = self._read if set(names) == set(self._read) else names
        return replace(
            piece,
            partition_values=tuple(values[self._physical.get(name, name)] for name in names),
            partition_columns=None if names == self._read else names,
        )
