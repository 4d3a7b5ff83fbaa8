"""What is deprecated: a record each, which warns at the user's line; `docs/compatibility.md` has the rule."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from delta_ds.records import dataclass

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGE = __name__.partition(".")[0]


class DeltaDeprecationWarning(DeprecationWarning):
    """Something public of this package goes away in a later version; the text says when, and what to use instead.

    Examples
    --------
    >>> import warnings
    >>> from delta_ds import DeltaDeprecationWarning
    >>> warnings.simplefilter("error", DeltaDeprecationWarning)  # a test suite finds all uses
    """


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Something public that goes away.

    Attributes
    ----------
    name
        As it is used: `option optimiseWrite`, `pydelta show --rows`, or class and method as below.
    since
        The version that warned first, as `0.3`.
    until
        The first version without it, as `0.5`.
    instead
        What to use.

    >>> Deprecation("DeltaTable.optimise", since="0.3", until="0.5", instead="DeltaTable.optimize").text
    'DeltaTable.optimise is deprecated since delta_ds 0.3 and goes away in 0.5: use DeltaTable.optimize'
    """

    name: str
    since: str
    until: str
    instead: str

    @property
    def text(self) -> str:
        return (
            f"{self.name} is deprecated since delta_ds {self.since} and goes away in {self.until}: "
            f"use {self.instead}"
        )

    def warn(self) -> None:
        """Warn at the line that called this package, whatever lies between."""
        level = 2
        frame = sys._getframe(1)
        while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
            level, frame = level + 1, frame.f_back
        warnings.warn(self.text, DeltaDeprecationWarning, stacklevel=level)

    def marks(self, function: _F) -> _F:
        """A function or method that warns whenever it is called."""

        @functools.wraps(function)
        def called(*arguments: Any, **keywords: Any) -> Any:
            self.warn()
            return function(*arguments, **keywords)

        return called  # type: ignore[return-value]


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == _PACKAGE


# All that is deprecated; the page of the promise and the tests ask this. One that is taken away leaves it.
DEPRECATIONS: tuple[Deprecation, ...] = ()
