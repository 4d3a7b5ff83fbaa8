"""Objects of Python that the JVM holds, and gives back when it asks."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar
from weakref import WeakValueDictionary

# py4j gives a stand-in back, and not the object; those that the JVM holds are alive.
_held: WeakValueDictionary[str, Held] = WeakValueDictionary()


class Held:
    """An object that lives as long as the JVM holds this.

    Attributes
    ----------
    id
        By which it is found again.
    """

    def __init__(self, value: Any = None) -> None:
        self.id = uuid.uuid4().hex
        self.value = value
        _held[self.id] = self

    def get(self) -> str:
        """The id, which is all that the JVM can be told."""
        return self.id

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Supplier"]


def held(id: str) -> Held:
    """What the JVM holds under an id."""
    return _held[id]
