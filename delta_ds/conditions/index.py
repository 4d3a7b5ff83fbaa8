"""All conditions by name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from delta_ds import conditions
from delta_ds.conditions.record import ErrorCondition, Family


def sql_state(condition: str) -> str | None:
    """The SQLSTATE of a condition; None for one that is not known. A part after a dot does not change it.

    >>> sql_state("DELTA_TABLE_NOT_FOUND")
    '42P01'
    """
    record = _by_whole_name().get(condition.partition(".")[0])
    return None if record is None else record.sql_state


def family(condition: str) -> Family | None:
    """Which kind of exception a condition is; None: it is not known.

    >>> family("DELTA_ILLEGAL_OPTION")
    'argument'
    """
    record = _by_whole_name().get(condition.partition(".")[0])
    return None if record is None else record.family


@functools.cache
def all_conditions() -> Mapping[str, tuple[ErrorCondition[Any], ...]]:
    """Every condition with its texts, the first one first.

    Raises
    ------
    ValueError
        Two records claim the same name, or the parts of one condition differ in what they have in common.
    """
    found: dict[str, list[ErrorCondition[Any]]] = {}
    for module in pkgutil.iter_modules(conditions.__path__, f"{conditions.__name__}."):
        for record in vars(importlib.import_module(module.name)).values():
            if isinstance(record, ErrorCondition):
                _add(record, found.setdefault(record.name, []))
    return {name: tuple(found[name]) for name in sorted(found)}


def _add(record: ErrorCondition[Any], texts: list[ErrorCondition[Any]]) -> None:
    if record.first is not (texts[0] if texts else None):
        raise ValueError(f"{record.name} has two records; make one of the other with `also`")
    texts.append(record)


@functools.cache
def _by_whole_name() -> Mapping[str, ErrorCondition[Any]]:
    found: dict[str, ErrorCondition[Any]] = {}
    for name, (record, *_) in all_conditions().items():
        other = found.setdefault(name.partition(".")[0], record)
        if (other.sql_state, other.family) != (record.sql_state, record.family):
            raise ValueError(f"{other.name} and {name} differ in SQLSTATE or family")
    return found
