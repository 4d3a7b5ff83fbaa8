"""From storage options to the coordinator that they name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from delta_ds.conditions.coordination import UNKNOWN_COMMIT_COORDINATOR
from delta_ds.kernel.storage.coordination.coordinator import CommitCoordinator
from delta_ds.kernel.storage.store_options import COMMIT_COORDINATOR, store_options

# The value of `commitCoordinator` -> the module and class; imported when it is named.
COORDINATORS = {
    "unity": "delta_ds.kernel.transaction.unity.coordinator:UnityCatalog",
    "sqlite": "delta_ds.kernel.storage.coordination.sqlite:SQLiteCoordinator",
}


def coordinator_for(options: Mapping[str, Any]) -> CommitCoordinator:
    """The coordinator that storage options name, by `commitCoordinator`: a kind, or `package.module:Class` of your own.

    Raises
    ------
    InvalidOptionError
        There is none of that name, or its other options do not fit.
    """
    named = store_options(options).get(COMMIT_COORDINATOR, "").strip()
    place = COORDINATORS.get(named.lower(), named)
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name) if module and name else None
    except (ImportError, AttributeError):
        found = None
    if not (isinstance(found, type) and issubclass(found, CommitCoordinator)):
        near = difflib.get_close_matches(named.lower(), COORDINATORS, n=1)
        raise UNKNOWN_COMMIT_COORDINATOR(
            value=named,
            known=[*COORDINATORS, "package.module:Class"],
            hint=f"; did you mean {near[0]!r}?" if near else "",
        )
    return found(options)
