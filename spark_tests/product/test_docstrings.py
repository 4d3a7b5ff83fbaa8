"""Docstrings: what their examples say is what happens, and what they name exists.

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
from spark_tests.product.cited_names import Names, missing, sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture(scope="module")
def names() -> Names:
    return Names.of_package()


def test_names_in_docstrings_and_comments_exist(names: Names) -> None:
    stale = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in sources()
        for line, name in missing(file, names)
    ]
    assert not stale, "names of nothing in this package:\n" + "\n".join(stale)


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ('"""See `kernel/gone.py`."""', (1, "kernel/gone.py")),
        ('"""Of `Gone.java`."""', (1, "Gone.java")),
        ('"""First.\n\nAs `snapshot.gone` does."""', (3, "snapshot.gone")),
        ("x = 1\n# See `Snapshot.gone`.", (2, "Snapshot.gone")),
        ('"""`log.snapshots.gone.Part`"""', (1, "log.snapshots.gone.Part")),
        ('"""`gone_module.function`"""', (1, "gone_module.function")),
        ('"""`gone.SOME_CONSTANT`"""', (1, "gone.SOME_CONSTANT")),
        ('"""`gone_function()`"""', (1, "gone_function()")),
        (
            '"""`api/snapshot.py`, `snapshot.Snapshot.scan`, `Snapshot.scan`, `DeltaTable.forPath(spark, path)`"""',
            None,
        ),
        (
            '"""`delta.appendOnly`, `spark.sql`, `metaData.id`, `merge.materializeSource.maxAttempts`, `a.b`"""',
            None,
        ),
        ('"""`current_timestamp()`, `len()`, `SELECT x.y`, `__init__()`"""', None),
        ('"""First.\n\nSource: Spark, `Cast.canCast` and\n`StructType.gone`.\n"""', None),
        ("def f(files):\n    # `files.table` is as it was.\n    pass", None),
    ],
)
def test_a_name_that_is_nowhere_is_found(
    names: Names, tmp_path: Path, text: str, stale: tuple[int, str] | None
) -> None:
    file = tmp_path / "module.py"
    file.write_text(text + "\n", encoding="utf-8")
    assert list(missing(file, names)) == ([] if stale is None else [stale])


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
