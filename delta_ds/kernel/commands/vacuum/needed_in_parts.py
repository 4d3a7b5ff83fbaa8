"""What VACUUM must leave, found from the parts of a checkpoint in other processes, and kept as hashes."""

from __future__ import annotations

import secrets

import numpy as np
import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import integers, numbers
from delta_ds.kernel.commands.vacuum.command import exactly_needed
from delta_ds.kernel.commands.vacuum.references import (
    Needed,
    NeededHashes,
    PathHashes,
    needed_by_commits,
    needed_in_part,
)
from delta_ds.kernel.log.parts import Map, Part, parts_for_tasks
from delta_ds.kernel.log.replay import load_head
from delta_ds.kernel.log.segment import LogListing
from delta_ds.kernel.log.snapshot import Snapshot


def needed_in_parts(snapshot: Snapshot, listing: LogListing, cutoff_ms: int, map: Map) -> Needed:
    """What must stay; see `needed_paths`.

    Parameters
    ----------
    snapshot, listing, cutoff_ms
        See `needed_paths`.
    map
        Calls what names the files of a part; that can be pickled by value.

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

    def hashes(part: Part) -> pa.Table:
        known = np.unique(PathHashes(seed).of(needed_in_part(older, part, cutoff_ms)))
        return pa.table({"hash": integers(known.view(np.int64))})

    tables = map(hashes, parts_for_tasks(storage, older.checkpoint))
    own = PathHashes(seed)
    recent = own.of(needed_by_commits(snapshot, head, listing, cutoff_ms))
    return NeededHashes(own, [recent, *(numbers(table["hash"]).view(np.uint64) for table in tables)])
