"""The package `delta` that stands in for delta-spark's has its public names, and takes the calls that it takes."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.interop

pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")

# Those of `delta.connect` need what pyspark asks for on a client, which is not installed here.
MODULES = ["", ".tables", ".exceptions", ".exceptions.base", ".pip_utils", ".version"]
CLASSES = [
    "DeltaTable",
    "DeltaMergeBuilder",
    "DeltaTableBuilder",
    "DeltaOptimizeBuilder",
    "IdentityGenerator",
]


def public_names(module: ModuleType) -> set[str]:
    """What delta-spark defines in a module or hands on from another of its own."""
    return {
        name
        for name, value in vars(module).items()
        if name == "__version__"
        or (not name.startswith("_") and str(getattr(value, "__module__", "")).split(".")[0] == "delta")
    }


@pytest.mark.parametrize("name", MODULES)
def test_the_public_names_of_a_module_are_there(name: str):
    theirs = public_names(importlib.import_module(f"delta{name}"))
    ours = importlib.import_module(f"delta_ds.spark.as_delta.delta{name}")
    assert theirs
    assert {name for name in theirs if not hasattr(ours, name)} == set()
    assert set(ours.__all__ if hasattr(ours, "__all__") else ["__version__"]) <= theirs


def parameters(method: Any) -> list[tuple[str, Any]]:
    return [(p.name, p.kind) for p in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_takes_the_arguments_that_it_takes_there(name: str):
    from delta import tables as theirs

    from delta_ds.spark.as_delta.delta import tables as ours

    methods = {n: m for n, m in vars(getattr(theirs, name)).items() if not n.startswith("_")}
    differ = {
        method: (parameters(expected), parameters(getattr(getattr(ours, name), method, lambda: None)))
        for method in methods
        for expected in [getattr(getattr(theirs, name), method)]
        if callable(expected)
        and parameters(expected)
        != parameters(getattr(getattr(ours, name), method, lambda: None))[: len(parameters(expected))]
    }
    assert differ == {}


def test_the_version_is_that_of_the_delta_spark_whose_names_these_are():
    import delta

    from delta_ds.spark.as_delta.delta.version import __version__

    assert __version__ == delta.__version__


def test_the_call_says_that_delta_spark_stays():
    import delta

    from delta_ds.spark.as_delta.settings import other_package

    assert other_package() == delta.__file__
