"""What a catalog prohibits on its tables unless it permits it.

Source: PROTOCOL.md, "Maintenance Operations on Catalog-managed Tables".
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from delta_ds.conditions.coordination import UNKNOWN_MAINTENANCE


class Maintenance(Enum):
    """An operation that needs permission; the value is how users spell it."""

    LOG_CLEANUP = "logCleanup"
    VACUUM = "vacuum"
    OPTIMIZE = "optimize"


def maintenance(names: Collection[str]) -> frozenset[Maintenance]:
    """The operations of some names, in any case.

    Raises
    ------
    InvalidOptionError
        There is none of a name.
    """
    folded = {operation.value.lower(): operation for operation in Maintenance}
    given = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in given if name.lower() not in folded]
    if unknown:
        raise UNKNOWN_MAINTENANCE(value=unknown[0], known=[operation.value for operation in Maintenance])
    return frozenset(folded[name.lower()] for name in given)
