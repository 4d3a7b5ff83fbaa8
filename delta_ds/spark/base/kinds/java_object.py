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
