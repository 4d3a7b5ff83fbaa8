"""Tables of an embedded coordinator for tests, and a coordinator that fails where it is told to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.storage.coordination.coordinator import ManagedTable, ProposedCommit, RatifiedCommits
from delta_ds.kernel.storage.coordination.sqlite import SQLiteCoordinator

NAME = "main.sales.orders"
FAULTY = f"{__name__}:FaultyCoordinator"


class FaultyCoordinator(SQLiteCoordinator):
    """The embedded coordinator, with what happens before and after its answers; and counts of what it was asked."""

    kind: ClassVar[str] = "faulty"
    before: ClassVar[dict[str, Callable[[], None]]] = {}
    after: ClassVar[dict[str, Callable[[], None]]] = {}
    asked: ClassVar[list[str]] = []

    @classmethod
    def reset(cls) -> None:
        cls.before, cls.after, cls.asked = {}, {}, []

    def _around(self, name: str, call: Callable[[], Any]) -> Any:
        type(self).asked.append(name)
        self.before.get(name, _nothing)()
        answer = call()
        self.after.get(name, _nothing)()
        return answer

    def ratify(
        self,
        table: ManagedTable,
        commit: ProposedCommit,
        *,
        protocol: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        domains: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        ratify = super().ratify
        told = {"protocol": protocol, "metadata": metadata, "domains": domains}
        self._around("ratify", lambda: ratify(table, commit, **told))

    def ratified(
        self, table: ManagedTable, start: int | None = None, end: int | None = None
    ) -> RatifiedCommits:
        ratified = super().ratified
        return self._around("ratified", lambda: ratified(table, start, end))

    def published(self, table: ManagedTable, version: int) -> None:
        published = super().published
        self._around("published", lambda: published(table, version))


def _nothing() -> None:
    return None


class Managed:
    """A table of a coordinator in a folder, its options and its log."""

    def __init__(
        self,
        folder: Path,
        kind: str = "sqlite",
        allows: Collection[str] = (),
        name: str = NAME,
        create: bool = True,
    ) -> None:
        self.path = folder / name.rpartition(".")[2]
        self.options = {
            "commitCoordinator": kind, "coordinatorUrl": str(folder / "coordinator.db"), "catalogTable": name,
        }  # fmt: skip
        self.coordinator = SQLiteCoordinator(self.options)
        if create:
            self.coordinator.create(name, str(self.path), allows=allows)
        self.table = self.coordinator.resolve(name)

    @classmethod
    def known(cls, folder: Path, name: str) -> Managed:
        """One that the coordinator has already."""
        return cls(folder, name=name, create=False)

    def open(self) -> DeltaLog:
        """The table as another process would open it."""
        return DeltaLog(self.path, self.options)

    def append(self, *numbers: int) -> int:
        version = self.open().write(pa.table({"id": pa.array(numbers, pa.int64())}))
        assert version is not None
        return version

    def ids(self, version: int | None = None) -> list[int]:
        found = self.open().snapshot(version).scan().to_arrow()["id"].to_pylist()
        return sorted(found)

    def published(self) -> list[int]:
        return sorted(
            int(p.name[:20]) for p in (self.path / "_delta_log").glob("*.json") if len(p.name) == 25
        )

    def staged(self) -> list[str]:
        return sorted(p.name for p in (self.path / "_delta_log/_staged_commits").glob("*"))
