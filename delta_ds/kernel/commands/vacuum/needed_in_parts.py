"""What VACUUM must leave, found from the parts of a checkpoint in other processes, and kept as hashes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from delta_ds.kernel.commands.vacuum.command import exactly_needed
from delta_ds.kernel.commands.vacuum.needed import Needed, NeededHashes, PathHashes
from delta_ds.kernel.commands.vacuum.references import needed_by_commits, needed_in_part
from delta_ds.kernel.log.parts import Part, parts_for_tasks
from delta_ds.kernel.log.replay import load_head
from delta_ds.kernel.log.segment import LogListing
from delta_ds.kernel.log.snapshot import Snapshot

# Runs a function on each of some parts, wherever that is; what it answers, in any order.
RunParts: TypeAlias = Callable[[Sequence[Part], Callable[[Part], Iterable[bytes]]], Sequence[bytes]]

_HASHES_AT_ONCE = 1 << 20


def needed_in_parts(snapshot: Snapshot, listing: LogListing, cutoff_ms: int, run: RunParts) -> Needed:
    """What must stay; see `needed_paths`.

    Parameters
    ----------
    snapshot, listing, cutoff_ms
        See `needed_paths`.
    run
        Runs what names the files of a part; it can be pickled by value.

    Raises
    ------
    DeltaError
        As `needed_paths`; UnreadableCheckpointError where another checkpoint would have to be looked at.
    """
    storage = snapshot.storage
    head = load_head(storage, snapshot.segment)
    older = head.older
    if older is None:
        return exactly_needed(snapshot, listing, cutoff_ms)
    seed = secrets.randbits(64)

    def hashes(part: Part) -> Iterator[bytes]:
        found = needed_in_part(older, part, cutoff_ms)
        known = np.unique(PathHashes(seed).of(found))
        for start in range(0, len(known), _HASHES_AT_ONCE):
            yield known[start : start + _HASHES_AT_ONCE].tobytes()

    messages = run(parts_for_tasks(storage, older.checkpoint), hashes)
    own = PathHashes(seed)
    recent = own.of(needed_by_commits(snapshot, head, listing, cutoff_ms))
    return NeededHashes(own, [recent, *(np.frombuffer(message, np.uint64) for message in messages)])
