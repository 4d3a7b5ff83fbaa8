"""Names of the package in texts: programs that tests start, paths that they patch, modules that are loaded by name.

Neither the type checker nor the linter looks into a text, so a renamed function would be missed there until a process
that a test starts fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("delta_ds", "spark_tests", "benchmarks", "examples", "scripts")
IMPORT = re.compile(r"from (delta_ds[\w.]*) import ([\w, ]+)")
DOTTED = re.compile(r"(?<![\w./-])delta_ds(?:\.[A-Za-z_]\w*)+")
# A class that a test makes up, and a key in the footers of checkpoints.
EXCEPT = {"delta_ds.exceptions.NewError", "delta_ds.statistics"}


@cache
def module_file(name: str) -> Path | None:
    """The file of a module of the package; None where there is no such module."""
    path = ROOT.joinpath(*name.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.exists()), None)


@cache
def names_in(module: str) -> frozenset[str]:
    """What a module defines or imports, anywhere in it, and the modules below it."""
    file = module_file(module)
    assert file is not None
    found = {path.stem for path in file.parent.iterdir()} if file.name == "__init__.py" else set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and module == "delta_ds":
            found.add(node.value)  # the public names, loaded on first use
    return frozenset(found)


def is_there(dotted: str) -> bool:
    """Whether a dotted name is that of a module, or of something in one."""
    module, rest = dotted, ""
    while module_file(module) is None:
        module, _, rest = module.rpartition(".")
    return not rest or rest.startswith("__") or rest in names_in(module)


def names_of_text(text: str) -> Iterator[str]:
    """Every name of the package in a text, in full."""
    for module, names in IMPORT.findall(text):
        for name in names.split(","):
            if name.strip():
                yield f"{module}.{name.split()[0]}"
    yield from DOTTED.findall(text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_in_texts_are_those_of_things_that_exist(folder: str):
    missing = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        if file == Path(__file__) or "corpora" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "delta_ds." in node.value:
                names = set(names_of_text(node.value)) - EXCEPT
                missing += [f"{file.relative_to(ROOT)}:{node.lineno} {n}" for n in names if not is_there(n)]
    assert missing == []


@pytest.mark.parametrize("name", ["delta_ds.kernel.nowhere", "delta_ds.kernel.log.snapshot.nothing"])
def test_a_name_that_is_gone_is_found(name: str):
    assert not is_there(name)
    assert list(names_of_text(f"patch('{name}')")) == [name]
