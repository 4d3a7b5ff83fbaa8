"""Names of the JVM: each is asked for once, but what may come to be there later."""

from __future__ import annotations

from types import SimpleNamespace

from py4j import protocol
from py4j.java_gateway import JavaClass, JavaPackage

from delta_ds.spark.base.kinds.java_object import JavaNames


class _Client:
    """Answers as a JVM that has the classes `a.b.C`, and `a.b.Later` when it is told so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gateway_property = SimpleNamespace(pool=None)
        self.converters: list[object] = []
        self.classes = {"a.b.C"}

    def send_command(self, command: str) -> str:
        name = command.splitlines()[2]
        self.asked.append(name)
        return protocol.SUCCESS_CLASS + name if name in self.classes else protocol.SUCCESS_PACKAGE


def test_a_name_is_asked_for_once() -> None:
    client = _Client()
    names = JavaNames(JavaPackage("a", client, protocol.DEFAULT_JVM_ID))
    assert isinstance(names.b.C, JavaClass)
    assert names.b.C is names.b.C
    assert client.asked == ["a.b", "a.b.C"]


def test_a_class_that_comes_later_is_found() -> None:
    client = _Client()
    names = JavaNames(JavaPackage("a", client, protocol.DEFAULT_JVM_ID))
    assert isinstance(names.b.Later, JavaNames)
    client.classes.add("a.b.Later")
    assert isinstance(names.b.Later, JavaClass)
