"""What is public: the names of `delta_ds` and `delta_ds.testing`, and the members of classes that `dir` shows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import delta_ds
from delta_ds import testing
from delta_ds.api.description import TableDetail
from delta_ds.api.merge import TableMerger
from delta_ds.api.snapshot import Blame
from delta_ds.kernel.commands.clone import CloneResult
from delta_ds.kernel.commands.convert_to_delta import ConvertResult
from delta_ds.kernel.commands.dml.delete import DeleteResult, UpdateResult
from delta_ds.kernel.commands.health import Due
from delta_ds.kernel.commands.layout.column import ColumnLayout
from delta_ds.kernel.commands.layout.timeline import Timeline
from delta_ds.kernel.commands.maintain import Maintenance, Step
from delta_ds.kernel.commands.merge.clauses import MergeResult
from delta_ds.kernel.commands.optimize.command import OptimizeResult
from delta_ds.kernel.commands.plot.plots import Plots
from delta_ds.kernel.commands.restore import RestoreResult
from delta_ds.kernel.commands.vacuum.command import VacuumResult
from delta_ds.kernel.files.read.plan import FileSlice
from delta_ds.kernel.files.scan.explain import Explanation
from delta_ds.kernel.format.actions import HistoryEntry, Metadata, Protocol
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.log.history import History

# What public methods hand out and what has no name of its own in `delta_ds`.
_HANDED_OUT = (
    Blame, ColumnLayout, DeleteResult, Due, Explanation, History, Maintenance, MergeResult, Plots, Step, TableMerger,
    Timeline, UpdateResult,
)  # fmt: skip
# Values without methods of their own for users.
_RECORDS = (
    CloneResult, ConvertResult, FileSlice, HistoryEntry, Metadata, OptimizeResult, Protocol, RestoreResult,
    StructType, TableDetail, VacuumResult,
)  # fmt: skip
RECORDS = {kind.__name__ for kind in _RECORDS} | {"Action", "Expression"}


class Member(NamedTuple):
    """A public method or property: what it is called, and the function behind it."""

    name: str
    function: Callable[..., Any]
    is_method: bool


def names() -> dict[str, Any]:
    """Every public class and function by its full name."""
    found = {f"delta_ds.{name}": getattr(delta_ds, name) for name in delta_ds.__all__}
    found |= {f"{kind.__module__}.{kind.__name__}": kind for kind in _HANDED_OUT}
    own = {
        name: value
        for name, value in vars(testing).items()
        if getattr(value, "__module__", "") == testing.__name__
    }
    return found | {
        f"delta_ds.testing.{name}": value for name, value in own.items() if not name.startswith("_")
    }


def classes() -> list[type]:
    """Every public class."""
    return [value for value in names().values() if inspect.isclass(value)]


def results() -> list[type]:
    """The classes of what public methods hand out, values included."""
    return [*_HANDED_OUT, *_RECORDS]


def members(owner: type) -> Iterator[Member]:
    """The public methods and properties of a class that this package defines, its bases' too."""
    hidden = set(getattr(owner, "_INTERNAL", ()))
    for base in owner.__mro__:
        if not base.__module__.startswith("delta_ds"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in hidden:
                continue
            hidden.add(name)  # what a base calls by the same name is not met
            function = _function_of(value)
            if function is not None:
                is_method = not isinstance(value, (property, functools.cached_property))
                yield Member(f"{owner.__name__}.{name}", inspect.unwrap(function), is_method)


def _function_of(value: Any) -> Callable[..., Any] | None:
    if isinstance(value, (classmethod, staticmethod)):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    return value if inspect.isfunction(value) else None


def callables() -> dict[str, Callable[..., Any]]:
    """Every public function and method by name."""
    found = {name: inspect.unwrap(value) for name, value in names().items() if inspect.isfunction(value)}
    return found | {m.name: m.function for owner in classes() for m in members(owner) if m.is_method}


def properties() -> dict[str, Callable[..., Any]]:
    """Every public property by name."""
    return {m.name: m.function for owner in classes() for m in members(owner) if not m.is_method}
