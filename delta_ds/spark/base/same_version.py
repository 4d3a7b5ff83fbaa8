"""What travels to other Python processes is taken only by the same version of this package.

Executors may have another one installed. Its classes have the same names, and need not mean the same. Builds of one
version hold the same code (`hatch_build.py`). Checkouts are not told apart before they are built: a commit in the
middle of a session must not part the driver from its workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from delta_ds._version import __version__
from delta_ds.conditions.session import PYTHON_WORKERS_OF_OTHER_VERSION

_C = TypeVar("_C", bound=type)


class OfThisVersion:
    """A function that only the same version of the package unpickles."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (__version__, OfThisVersion, (self._function,))


def same_version(owner: _C) -> _C:
    """A class whose instances only the same version of the package unpickles."""

    def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
        made: Any = object.__reduce_ex__(self, max(2, protocol))
        return (_make, (__version__, *made[:2]), *made[2:])

    owner.__reduce_ex__ = reduce  # type: ignore[method-assign, assignment]
    return owner


def _make(version: str, make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """
    Raises
    ------
    UnsupportedOperationError
        The other process has another version.
    """
    if version != __version__:
        raise PYTHON_WORKERS_OF_OTHER_VERSION(version=version, found=__version__)
    return make(*arguments)
