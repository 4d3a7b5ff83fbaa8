"""What a commit coordinator is told and tells: tables and commits.

Source: PROTOCOL.md, "Catalog-managed tables", "Terminology: Commits".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.records import dataclass, field


@dataclass(frozen=True, slots=True)
class ManagedTable:
    """A table as its coordinator knows it.

    Attributes
    ----------
    name
        Its full name, such as `main.sales.orders`; the id where it has none.
    id
        What the coordinator tells its tables apart by.
    location
        Its address, as `open_storage` takes it.
    managed
        Whether its commits are ratified by the coordinator. False: a table that the coordinator knows and that is
        committed to on its file system.
    storage_options
        What its store is opened with besides what the user gave, such as temporary credentials; never shown.
    expires_ms
        When these end, in ms since 1970, and the table is to be resolved anew; None: never.
    properties
        What version 0 of a new table must have: properties, and features as properties that turn them on.
    open_with
        Storage options that a new table is opened with until it has a version 0; of no meaning to others.
    """

    name: str
    id: str
    location: str
    managed: bool = True
    storage_options: Mapping[str, Any] = field(default_factory=SecretOptions, repr=False, compare=False)
    expires_ms: int | None = field(default=None, compare=False)
    properties: Mapping[str, str] = field(default_factory=dict, compare=False)
    open_with: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ProposedCommit:
    """A commit that is proposed for a version, staged or inline.

    Attributes
    ----------
    version
        The version that it would have.
    file_name
        Of its file in `_delta_log/_staged_commits`, without the folder; None for an inline commit.
    size
        In bytes.
    modified_ms
        When the file was written, ms since 1970; of an inline commit its time of proposal.
    timestamp
        Its in-commit timestamp, ms since 1970.
    content
        Of an inline commit its bytes; None for a staged one.
    """

    version: int
    file_name: str | None
    size: int
    modified_ms: int
    timestamp: int
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RatifiedCommits:
    """What a coordinator answers to who reads a table.

    Attributes
    ----------
    latest
        The newest ratified version, published or not; -1 of a table without any.
    commits
        Those it still stores, of the versions asked for: ascending, without gaps. All before the first one are
        published; where it stores none, all up to `latest` are.
    """

    latest: int
    commits: tuple[ProposedCommit, ...] = ()
