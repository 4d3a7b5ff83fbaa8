"""Do something with a module as soon as somebody imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import cast

Action = Callable[[ModuleType], None]

_waiting: dict[str, Action] = {}


def after_import(name: str, action: Action) -> None:
    """Call a function with a module: now where it is imported already, else right after its import.

    Parameters
    ----------
    name
        Of the module, in full. That it is never found is no error.
    action
        Runs before whoever imports the module sees it.
    """
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return
    _waiting[name] = action
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def find_elsewhere(
    name: str, path: Sequence[str] | None, besides: object, target: ModuleType | None = None
) -> ModuleSpec | None:
    """What the finders of this process, but for one, find under a module's name; None: nothing."""
    for finder in sys.meta_path:
        # One of an old kind has no such method; Python passes over it, too.
        find_spec = getattr(finder, "find_spec", None) if finder is not besides else None
        found = find_spec(name, path, target) if find_spec is not None else None
        if found is not None:
            return cast(ModuleSpec, found)
    return None


class _Finder(MetaPathFinder):
    """Stands in front of all others for the modules that are waited for, and lets them find these."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        action = _waiting.pop(fullname, None)
        if action is None:
            return None
        spec = find_elsewhere(fullname, path, self, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, action)
        return spec


class _Loader(Loader):
    """The loader of a module, and what is done with the module then."""

    def __init__(self, loader: Loader, action: Action) -> None:
        self._loader = loader
        self._action = action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Whoever looks for the source of the module asks its loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._action(module)


_finder = _Finder()
