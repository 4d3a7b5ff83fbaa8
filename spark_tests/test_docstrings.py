"""The examples in docstrings: what they say is what happens.

Those that name `spark` get the session of the tests, the others run without a JVM. All run in the repository's root.
`/data/` in an example stands for a folder of its own, with a fresh table `orders` in it; `DeltaTable` and `DeltaLog`
are imported.
"""

from __future__ import annotations

import ast
import importlib
import re
import shutil
from collections.abc import Callable, Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, DocTest, DocTestFinder, DocTestRunner
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from delta_ds import DeltaLog, DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
PROMPT = ">>> "
MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in sorted((ROOT / "delta_ds").rglob("*.py"))
    if PROMPT in file.read_text(encoding="utf-8")
]
# Not that of another path, as in "examples/data/sales".
_DATA = re.compile(r"(?<![\w.])/data(?=/)")


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="session")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of the examples: `id`, `country` and `amount` of four orders, two a version, with a change feed."""
    folder = tmp_path_factory.mktemp("data") / "orders"
    log = DeltaLog(folder)
    how = {"partitionBy": "country", "delta.enableChangeDataFeed": "true"}
    log.write(pa.table({"id": [1, 2], "country": ["DE", "FR"], "amount": [10.0, 20.0]}), options=how)
    log.write(pa.table({"id": [3, 4], "country": ["DE", "PL"], "amount": [30.0, 40.0]}))
    return folder


@pytest.fixture
def fresh(orders: Path, tmp_path: Path) -> Callable[[], Path]:
    """A new folder with a copy of the table whenever it is called."""
    made = 0

    def make() -> Path:
        nonlocal made
        made += 1
        folder = tmp_path / f"data{made}"
        shutil.copytree(orders, folder / "orders")
        return folder

    return make


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str, fresh: Callable[[], Path]) -> None:
    module = importlib.import_module(name)
    tests = [test for test in _examples(module) if not _needs_session(test)]
    for test in tests:
        test.globs["DeltaLog"] = DeltaLog
    _run(tests, fresh)


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("delta_ds.spark.")])
def test_examples_with_a_session_are_true(name: str, spark: SparkSession, fresh: Callable[[], Path]) -> None:
    tests = [test for test in _examples(importlib.import_module(name)) if _needs_session(test)]
    for test in tests:
        test.globs |= {"spark": spark, "DeltaTable": DeltaTable}
    _run(tests, fresh)


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


def _run(tests: list[DocTest], fresh: Callable[[], Path]) -> None:
    said: list[str] = []
    for test in tests:
        if any(_DATA.search(example.source) for example in test.examples):
            folder = str(fresh())
            for example in test.examples:
                example.source = _DATA.sub(folder, example.source)
                example.want = _DATA.sub(folder, example.want)
        DocTestRunner(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE, verbose=False).run(test, out=said.append)
    assert not said, "".join(said)
