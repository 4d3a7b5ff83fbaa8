"""The examples in docstrings: what they say is what happens.

Those that name `spark` get the session of the tests, the others run without a JVM. All run in the repository's root.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, DocTest, DocTestFinder, DocTestRunner
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
PROMPT = ">>> "
MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in sorted((ROOT / "delta_ds").rglob("*.py"))
    if PROMPT in file.read_text(encoding="utf-8")
]


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    module = importlib.import_module(name)
    for test in _examples(module):
        if not _needs_session(test):
            _run(test)


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("delta_ds.spark.")])
def test_examples_with_a_session_are_true(name: str, spark: SparkSession) -> None:
    for test in _examples(importlib.import_module(name)):
        if _needs_session(test):
            test.globs["spark"] = spark
            _run(test)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_is_found(name: str) -> None:
    module = importlib.import_module(name)
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert sum(len(test.examples) for test in _examples(module)) == text.count(PROMPT)


def _examples(module: ModuleType) -> Iterator[DocTest]:
    return (test for test in DocTestFinder().find(module) if test.examples)


def _needs_session(test: DocTest) -> bool:
    nodes = (node for example in test.examples for node in ast.walk(ast.parse(example.source)))
    return any(isinstance(node, ast.Name) and node.id == "spark" for node in nodes)


def _run(test: DocTest) -> None:
    said: list[str] = []
    runner = DocTestRunner(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE, verbose=False)
    assert runner.run(test, out=said.append).failed == 0, "".join(said)
