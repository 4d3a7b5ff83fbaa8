"""`JavaObject`: what py4j hands over of the JVM, for type checkers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias


class JavaObject(Protocol):
    """An object of the JVM, or a class or a method of one: py4j looks up names when they are used.

    A static field may be a number. An array or a collection of Java can be iterated over, one of Scala cannot.
    """

    def __getattr__(self, name: str) -> JavaObject: ...
    def __call__(self, *arguments: object) -> Any: ...
    def __int__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, position: int) -> Any: ...


# What a method gives: strings, numbers, null and byte arrays are those of Python.
JavaValue: TypeAlias = JavaObject | Any


class JavaNames:
    """Packages and classes of a JVM by their names, as py4j's `jvm` has them, each asked for once.

    py4j asks the JVM for every part of a name, each time it is used, and the JVM looks for a class of the name of each
    package in all of its jars: for what is not a class, in vain.

    Parameters
    ----------
    found
        The `jvm` of py4j, or a package of it.
    """

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaPackage

        found = getattr(self._found, name)
        if isinstance(found, JavaPackage):
            found = JavaNames(found)
            # A class that is missing looks like a package, and may be there later.
            if not name[:1].islower():
                return found
        self.__dict__[name] = found
        return found

    def __repr__(self) -> str:
        return f"<names below {getattr(self._found, '_fqn', 'the root')}>"
