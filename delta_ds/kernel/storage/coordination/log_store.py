"""A log store that publishes commits by a coordinator: staged, ratified, and then copied to their places, in order.

A commit is done when it is ratified. Publishing follows and never fails it; whoever commits next, or writes a
checkpoint, publishes what a writer that ended in between has left.

Source: PROTOCOL.md, "Commit Protocol", "Publishing Commits"; protocol-checklist CAT-W-03, CAT-W-04.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from delta_ds.conditions.coordination import (
    CATALOG_BEHIND_LOG,
    COORDINATOR_FULL,
    PUBLISHED_COMMIT_DIFFERS,
    UNMANAGED_TABLE_THERE,
)
from delta_ds.conditions.storage import NOT_IN_TABLE
from delta_ds.events.storage import COMMIT_LEFT_UNPUBLISHED, STAGED_COMMIT_LEFT
from delta_ds.exceptions import DeltaError, StorageError, UncertainWriteError
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.coordination.coordinator import (
    CommitCoordinator,
    ManagedTable,
    ProposedCommit,
    RatifiedCommits,
)
from delta_ds.kernel.storage.deleter import STAGED_COMMITS, behind
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import (
    ConditionalLogStore,
    LogStore,
    relative_commit_path,
    uncertain_error,
)
from delta_ds.kernel.storage.store_errors import pause

_ATTEMPTS = 6
_STAGED = "_delta_log/_staged_commits"
_OF_VERSION = re.compile(r"\d{20}\..*(json|parquet)")
_SINGLE = re.compile(rb'^\{"(commitInfo|protocol|metaData)":.*$', re.MULTILINE)


class ManagedStorage(Protocol):
    """What it needs of the storage of a table; see `CoordinatedStorage`."""

    url: str

    @property
    def coordinator(self) -> CommitCoordinator: ...
    @property
    def table(self) -> ManagedTable: ...
    @property
    def plain(self) -> Storage: ...
    def learn(self, answer: RatifiedCommits, start: int | None = None) -> None: ...
    def ask(self) -> RatifiedCommits: ...
    def unpublished(self, version: int) -> Sequence[ProposedCommit]: ...
    def is_published(self, version: int) -> None: ...
    def content(self, commit: ProposedCommit) -> bytes: ...


_DOMAIN = re.compile(rb'^\{"domainMetadata":.*$', re.MULTILINE)


class CoordinatedLogStore(LogStore):
    """Publishes by staging a commit and having it ratified."""

    def __init__(self, storage: ManagedStorage) -> None:
        self.storage = storage

    def publish(self, version: int, data: bytes) -> None:
        plain = self.storage.plain
        if plain.exists(relative_commit_path(version)) or (version == 0 and _has_log(plain)):
            self._refuse_published(version)
        actions = _single_actions(data)
        commit = self._stage(version, data, actions)
        self._ratify(commit, data, actions)
        if self._is_published_first(version):
            self.storage.learn(RatifiedCommits(0))
            return
        self.storage.learn(RatifiedCommits(version, (commit,)), version)
        try:
            self.back_fill(version, data)
        except Exception as error:  # noqa: BLE001 - it is ratified, and whoever commits next publishes it
            COMMIT_LEFT_UNPUBLISHED.log(table=self.storage.url, version=version, reason=error)

    def _refuse_published(self, version: int) -> None:
        """Refuse a version that is in the log already, and to begin upon what is left of another table.

        Mostly another writer was faster. Where the coordinator does not know it, it may have lost what it confirmed,
        and would take another commit in its place: of rows that somebody was told are there.
        """
        coordinator = self.storage.coordinator
        if coordinator.ratified(self.storage.table).latest >= version:
            raise FileExistsError(f"version {version} of {self.storage.url} is ratified already")
        if version == 0:
            raise UNMANAGED_TABLE_THERE(table=self.storage.url, coordinator=coordinator.describe())
        raise CATALOG_BEHIND_LOG(
            table=self.storage.url,
            coordinator=coordinator.describe(),
            version=version,
            path=relative_commit_path(version),
            before=version - 1,
        )

    def _is_published_first(self, version: int) -> bool:
        return version == 0 and self.storage.coordinator.publishes_version_0

    # --- stage and ratify

    def _stage(self, version: int, data: bytes, actions: dict[str, Any]) -> ProposedCommit:
        if self._is_published_first(version):
            name = relative_commit_path(0).rpartition("/")[2]
            ConditionalLogStore(self.storage.plain).publish(0, data)
        else:
            name = f"{version:020}.{uuid.uuid4()}.json"
            try:
                self.storage.plain.create(f"{_STAGED}/{name}", data)
            except UncertainWriteError as error:
                raise StorageError(
                    f"{error.text}; nothing was committed", parameters=error.parameters
                ) from error
            except FileExistsError:
                pass  # the name is no other's: a request was repeated whose answer got lost
        now = time.time_ns() // 1_000_000
        info = actions.get("commitInfo", {})
        timestamp = info.get("inCommitTimestamp", info.get("timestamp", now))
        return ProposedCommit(version, name, len(data), now, timestamp)

    def _ratify(self, commit: ProposedCommit, data: bytes, actions: dict[str, Any]) -> None:
        """Have a commit ratified, or raise `FileExistsError` if another one has its version."""
        sent = False
        problem: Exception
        refused: DeltaError | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(attempt)
            refused = None
            try:
                self.storage.coordinator.ratify(
                    self.storage.table,
                    commit,
                    protocol=actions.get("protocol"),
                    metadata=actions.get("metaData"),
                    domains=_domains(data),
                )
                return
            except (FileExistsError, UncertainWriteError) as error:
                # Who has the version may be this very commit, by a request that the coordinator's client repeated.
                problem, sent = error, True
            except DeltaError as error:
                problem = refused = error
            if refused is not None and not sent:
                full = refused.condition == COORDINATOR_FULL.name and attempt + 1 < _ATTEMPTS
                if full and self._make_room(commit.version):
                    continue
                self._give_up(commit)
                raise refused
            there = self._is_ratified(commit, data)
            if there:
                return
            if there is False:
                self._give_up(commit)
                raise FileExistsError(f"version {commit.version} of {self.storage.url} is ratified already")
        if refused is not None and not sent:
            self._give_up(commit)
            raise refused
        raise uncertain_error(self.storage.url, commit.version, problem) from problem

    def _is_ratified(self, commit: ProposedCommit, data: bytes) -> bool | None:
        """Whether it is the commit of its version; None if the version has none yet, or nobody can tell now."""
        storage = self.storage
        try:
            answer = storage.coordinator.ratified(storage.table, commit.version, commit.version)
            if answer.latest < commit.version:
                return None
            if answer.commits:
                stored = answer.commits[0]
                return (stored.file_name, stored.content) == (commit.file_name, commit.content)
            return storage.plain.read_whole(relative_commit_path(commit.version)) == data
        except (DeltaError, FileNotFoundError):
            return None

    def _make_room(self, version: int) -> bool:
        """Publish what is ratified before a version, which others have left; whether that was done."""
        try:
            self.storage.ask()
            self.back_fill(version - 1)
        except (DeltaError, FileNotFoundError) as error:
            COMMIT_LEFT_UNPUBLISHED.log(table=self.storage.url, version=version - 1, reason=error)
            return False
        return True

    def _give_up(self, commit: ProposedCommit) -> None:
        """Delete the staged file of a commit that is certainly not ratified."""
        if self._is_published_first(commit.version) or commit.file_name is None:
            return
        try:
            deleter.delete(self.storage.plain, STAGED_COMMITS, [f"{_STAGED}/{commit.file_name}"])
        except StorageError as error:
            STAGED_COMMIT_LEFT.log(path=f"{_STAGED}/{commit.file_name}", reason=error)

    # --- publish

    def back_fill(self, version: int, data: bytes | None = None) -> None:
        """Copy the ratified commits up to a version to their places, in order, and tell the coordinator.

        Parameters
        ----------
        data
            The bytes of that version, where they are at hand.

        Raises
        ------
        StorageError
            The store or the coordinator refused; or a place holds something else than what was ratified.
        FileNotFoundError
            The content of a ratified commit is gone.
        """
        storage = self.storage
        waiting = storage.unpublished(version)
        for commit in waiting:
            content = data if data is not None and commit.version == version else self._staged(commit)
            self._put(commit, content)
            storage.is_published(commit.version)
        if waiting:
            storage.coordinator.published(storage.table, waiting[-1].version)

    def _staged(self, commit: ProposedCommit) -> bytes:
        """The content of a ratified commit; of a staged file that is a link it is not taken, wherever that leads."""
        staged = f"{_STAGED}/{commit.file_name}"
        link = self.storage.plain.link_on_the_way(staged) if commit.content is None else None
        if link is not None:
            raise NOT_IN_TABLE(
                path=staged, kind=STAGED_COMMITS.name, reason=behind(link), outcome="it is not published"
            )
        return self.storage.content(commit)

    def _put(self, commit: ProposedCommit, content: bytes) -> None:
        path = relative_commit_path(commit.version)
        try:
            self.storage.plain.create(path, content)
        except FileExistsError:
            if self.storage.plain.read(path) != content:
                raise PUBLISHED_COMMIT_DIFFERS(
                    table=self.storage.url,
                    path=path,
                    version=commit.version,
                    coordinator=self.storage.coordinator.describe(),
                ) from None


def _has_log(plain: Storage) -> bool:
    """Whether a folder holds commits or checkpoints of any table."""
    try:
        return any(_OF_VERSION.fullmatch(s.path.rpartition("/")[2]) for s in plain.list_from("_delta_log"))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _single_actions(data: bytes) -> dict[str, Any]:
    """The `commitInfo`, `protocol` and `metaData` of a commit, by name."""
    return {name: body for line in _SINGLE.finditer(data) for name, body in parse_json(line[0]).items()}


def _domains(data: bytes) -> list[dict[str, Any]]:
    """The `domainMetadata` actions of a commit."""
    return [parse_json(line[0])["domainMetadata"] for line in _DOMAIN.finditer(data)]
