"""Replace methods of Spark's classes by ones that handle calls for this package.

A replacement keeps the name, signature and docstring of what it stands for, and calls it for everything else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from delta_ds.events.spark import PATCH_LEFT_IN_PLACE
from delta_ds.spark.base.kinds.session_kind import kind_of
from delta_ds.spark.errors.translation import delta_errors

# Takes the original, the object and the named arguments of a call.
Handler = Callable[[Callable[..., Any], Any, dict[str, Any]], Any]

_ORIGINAL = "_delta_ds_original"
_applied: dict[tuple[type, str], Callable[..., Any]] = {}


def apply(owner: type, name: str, concerns: Callable[[Any, dict[str, Any]], bool], handle: Handler) -> None:
    """Put a replacement in the place of a method, unless it is there already.

    Parameters
    ----------
    owner
        The class that defines the method.
    name
        Of the method.
    concerns
        Whether a call, by its object and its named arguments, is for this package.
    handle
        What such a call does.
    """
    if (owner, name) in _applied:
        return
    original = owner.__dict__[name]
    signature = inspect.signature(original)

    @functools.wraps(original)
    def replacement(self: Any, *positional: Any, **named: Any) -> Any:
        try:
            arguments = dict(signature.bind(self, *positional, **named).arguments)
        except TypeError:
            # The original says it in its own words.
            return original(self, *positional, **named)
        arguments.pop(next(iter(signature.parameters)))
        if not concerns(self, arguments):
            return original(self, *positional, **named)
        with delta_errors(), kind_of(self):
            return handle(original, self, arguments)

    setattr(replacement, _ORIGINAL, original)
    setattr(owner, name, replacement)
    _applied[owner, name] = replacement


def undo(owner: type, name: str) -> None:
    """Put the original back; does nothing where it is in place."""
    replacement = _applied.pop((owner, name), None)
    if replacement is None:
        return
    if owner.__dict__.get(name) is replacement:
        setattr(owner, name, getattr(replacement, _ORIGINAL))
    else:
        # Someone else has replaced the replacement: theirs stays, and ours hands every call on.
        PATCH_LEFT_IN_PLACE.log(method=f"{owner.__qualname__}.{name}")


def call_original(target: Any, name: str, *positional: Any, **named: Any) -> Any:
    """Call a method as Spark has it, whether it is replaced or not."""
    method = getattr(type(target), name)
    return getattr(method, _ORIGINAL, method)(target, *positional, **named)
