"""Compiled classes are kept for the next session: those of the same texts, Java and class path, and no others."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from delta_ds.spark.engines.classic import class_cache, jvm
from delta_ds.spark.engines.classic.class_cache import compiled

TEXTS = {"A": "class A {}", "B": "class B {}"}
MADE = {"A": b"\xca\xfe", "A$1": b"\x00"}


class _Driver:
    """What is asked of a JVM: its properties."""

    def __init__(self, class_path: list[Path], version: str = "17.0.1") -> None:
        known = {
            "java.class.path": os.pathsep.join(map(str, class_path)),
            "path.separator": os.pathsep,
            "java.version": version,
        }
        system = SimpleNamespace(getProperty=known.__getitem__)
        self.java = SimpleNamespace(lang=SimpleNamespace(System=system))
        self.compilations = 0

    def compile(self) -> dict[str, bytes]:
        self.compilations += 1
        return MADE

    def classes(self, texts: dict[str, str] = TEXTS) -> dict[str, bytes]:
        return compiled(self, self, texts, self.compile)


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DELTA_DS_CACHE", str(tmp_path / "cache"))
    jar = tmp_path / "spark-core.jar"
    jar.write_bytes(b"jar")
    return jar


def entries(jar: Path) -> list[Path]:
    return list((jar.parent / "cache" / "classes").glob("*"))


def test_the_next_session_compiles_nothing(jar: Path):
    path = [jar, jar.parent / "no folder of settings"]
    first, second = _Driver(path), _Driver(path)
    assert first.classes() == second.classes() == MADE
    assert (first.compilations, second.compilations) == (1, 0)
    (entry,) = entries(jar)
    assert entry.stat().st_mode & 0o077 == 0
    assert entry.parent.stat().st_mode & 0o077 == 0


def test_other_texts_another_java_and_another_spark_are_compiled(jar: Path):
    assert _Driver([jar]).classes() == MADE
    other_text, other_java = _Driver([jar]), _Driver([jar], "21.0.2")
    other_text.classes({**TEXTS, "B": "class B { }"})
    other_java.classes()
    other_jar = _Driver([jar, jar.parent])
    other_jar.classes()
    jar.write_bytes(b"patched jar")
    patched = _Driver([jar])
    patched.classes()
    assert [d.compilations for d in (other_text, other_java, other_jar, patched)] == [1, 1, 1, 1]


@pytest.mark.parametrize("damage", [b"", b"x" * 10, b"y" * 100])
def test_a_damaged_entry_is_compiled_anew(jar: Path, damage: bytes, caplog: pytest.LogCaptureFixture):
    _Driver([jar]).classes()
    (entry,) = entries(jar)
    entry.write_bytes(damage)
    with caplog.at_level(logging.WARNING, "delta_ds"):
        again = _Driver([jar])
        assert again.classes() == MADE
    assert again.compilations == 1
    assert "compiled_classes_ignored" in caplog.text
    last = _Driver([jar])
    assert (last.classes(), last.compilations) == (MADE, 0)


def test_one_changed_byte_is_seen(jar: Path):
    _Driver([jar]).classes()
    (entry,) = entries(jar)
    data = bytearray(entry.read_bytes())
    for place in range(len(data)):
        entry.write_bytes(bytes([*data[:place], data[place] ^ 1, *data[place + 1 :]]))
        assert class_cache._read(entry) is None
    entry.write_bytes(data)
    assert class_cache._read(entry) == MADE


def test_nothing_is_kept_where_the_cache_is_off_or_not_this_users_alone(
    jar: Path, monkeypatch: pytest.MonkeyPatch
):
    (jar.parent / "cache").mkdir(mode=0o755)
    for setting in ("off", str(jar.parent / "cache")):
        monkeypatch.setenv("DELTA_DS_CACHE", setting)
        drivers = [_Driver([jar]), _Driver([jar])]
        assert [d.classes() for d in drivers] == [MADE, MADE]
        assert [d.compilations for d in drivers] == [1, 1]
    assert entries(jar) == []


def test_nothing_is_kept_for_a_driver_whose_jars_are_not_here(jar: Path):
    far = _Driver([jar, jar.parent / "elsewhere.jar"])
    assert (far.classes(), far.classes(), far.compilations) == (MADE, MADE, 2)
    assert entries(jar) == []


def test_only_the_last_entries_are_kept(jar: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(class_cache, "_MOST_ENTRIES", 3)
    for number in range(5):
        _Driver([jar]).classes({"A": f"class A {{ /* {number} */ }}"})
        for age, entry in enumerate(sorted(entries(jar), key=lambda e: e.stat().st_mtime_ns, reverse=True)):
            os.utime(entry, (1_000_000 - age, 1_000_000 - age))
    assert len(entries(jar)) == 3
    last = _Driver([jar])
    last.classes({"A": "class A { /* 4 */ }"})
    assert last.compilations == 0


@pytest.mark.spark
def test_a_class_that_was_kept_runs(spark: Any, jar: Path, monkeypatch: pytest.MonkeyPatch):
    internals = jvm.Jvm.of(spark)
    made = jvm._compile(internals.jvm, internals.gateway, "ConditionText")
    (entry,) = entries(jar)

    def no_compiler(*_: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(class_cache, "_write", no_compiler)
    kept = jvm._compile(internals.jvm, internals.gateway, "ConditionText")
    assert kept.getClass().getName() == made.getClass().getName() == "ConditionText"
    assert kept.getClass().hashCode() != made.getClass().hashCode()
    assert entry.exists()
