"""Write deletion vectors, several to a file.

Source: PROTOCOL.md, "Deletion Vectors" (protocol-checklist DV-*).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.kernel.format.actions import DeletionVector, without_nulls
from delta_ds.kernel.format.values.deletion_vector import (
    DeletionVectorDescriptor,
    encode,
    encode_file,
    read_positions,
    z85_encode,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from delta_ds.kernel.storage.filesystem import Storage

    Positions = npt.NDArray[np.uint64]

# As delta-spark packs them: deletionVectors.packing.targetSize.
_TARGET_BYTES = 2 << 20


def merge_positions(
    storage: Storage, before: DeletionVectorDescriptor | None, positions: Positions
) -> Positions:
    """The rows of a file that are deleted once more of them are.

    Parameters
    ----------
    storage
        The table's.
    before
        What deletes rows of the file already.
    positions
        uint64 row positions, in any order.

    Returns
    -------
    np.ndarray
        uint64, ascending and distinct.
    """
    if before is None:
        return np.unique(positions)
    return np.union1d(read_positions(storage, before), positions)


def write_vectors(
    storage: Storage, deleted: Mapping[str, Positions], written: list[str]
) -> dict[str, DeletionVectorDescriptor]:
    """Write deletion vectors to new files at the root of the table.

    Parameters
    ----------
    storage
        The table's.
    deleted
        By data file, the positions that are deleted in it: distinct.
    written
        Empty; gets the path of each file, relative to the table, before it is written.

    Returns
    -------
    dict
        The descriptors, by data file.

    Raises
    ------
    StorageError
        A file cannot be written; `written` has what has to be deleted.
    """
    found: dict[str, DeletionVectorDescriptor] = {}
    for keys, payloads in _pack_vectors(deleted):
        name = uuid.uuid4()
        data, offsets = encode_file(payloads)
        path = f"deletion_vector_{name}.bin"
        written.append(path)
        # Under its own name from the start, which nothing refers to yet: what a crash leaves, VACUUM finds.
        with storage.open_output(storage.resolve(path)) as output:
            output.write(data)
        identity = z85_encode(name.bytes)
        for key, payload, offset in zip(keys, payloads, offsets, strict=True):
            found[key] = DeletionVectorDescriptor("u", identity, offset, len(payload), len(deleted[key]))
    storage.fsync([storage.resolve(path) for path in written])
    return found


def _pack_vectors(deleted: Mapping[str, Positions]) -> Iterator[tuple[list[str], Sequence[bytes]]]:
    keys: list[str] = []
    payloads: list[bytes] = []
    size = 0
    for key, positions in deleted.items():
        payload = encode(positions)
        keys.append(key)
        payloads.append(payload)
        size += len(payload)
        if size >= _TARGET_BYTES:
            yield keys, payloads
            keys, payloads, size = [], [], 0
    if keys:
        yield keys, payloads


def as_action(descriptor: DeletionVectorDescriptor) -> DeletionVector:
    """The descriptor as an action has it."""
    body: DeletionVector = {
        "storageType": descriptor.storage_type,
        "pathOrInlineDv": descriptor.path_or_inline,
        "offset": descriptor.offset,
        "sizeInBytes": descriptor.size_in_bytes,
        "cardinality": descriptor.cardinality,
    }
    return without_nulls(body)
