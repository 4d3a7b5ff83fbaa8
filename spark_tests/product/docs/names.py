"""Blocks that no test machine can run: they are compiled, and what they name must be there."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from spark_tests.product.docs.blocks import ROOT, Block


class UnknownName(AssertionError):
    """A block names what is not there."""


def check_names(block: Block) -> None:
    """Imports, options, settings and methods of a Python block.

    Raises
    ------
    UnknownName
        One of them is not there.
    """
    tree = ast.parse(block.text, block.page)
    compile(block.text, block.page, "exec")
    foreign = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            foreign |= _import_from(block, node)
        elif isinstance(node, ast.Import):
            foreign |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    foreign -= {"delta_ds"}
    for node in ast.walk(tree):  # what theirs make is theirs
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _root(node.value) in foreign:
            foreign |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            _call(block, node, node.func, foreign)


def _import_from(block: Block, node: ast.ImportFrom) -> set[str]:
    """The names that come from elsewhere than this package."""
    module = node.module or ""
    if module.partition(".")[0] not in ("delta_ds", "pyspark"):
        return {alias.asname or alias.name for alias in node.names}
    there = importlib.import_module(module)
    for alias in node.names:
        if not hasattr(there, alias.name):
            raise UnknownName(f"{block.where}: there is no {module}.{alias.name}")
    return set()


def _root(found: ast.expr) -> str | None:
    """The name at the beginning of calls and attributes."""
    while isinstance(found, ast.Attribute | ast.Call):
        found = found.value if isinstance(found, ast.Attribute) else found.func
    return found.id if isinstance(found, ast.Name) else None


def _call(block: Block, node: ast.Call, method: ast.Attribute, foreign: set[str]) -> None:
    if _root(method) in foreign:
        return
    if method.attr not in _methods():
        raise UnknownName(f"{block.where}: nothing has a method {method.attr}")
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    if method.attr == "option" and isinstance(first, str):
        _option(block, first)
    elif method.attr == "options":
        for keyword in node.keywords:
            if keyword.arg:
                _option(block, keyword.arg)
    elif method.attr in ("config", "set") and isinstance(first, str):
        _setting(block, first)
    elif method.attr == "property" and isinstance(first, str):
        _property(block, first)


@cache
def _methods() -> frozenset[str]:
    """Every public method of what programs hold in their hands."""
    import pyarrow as pa
    from pyspark.sql import streaming

    import delta_ds
    from delta_ds.api import catalog, delta_log
    from delta_ds.spark.api import builder, table
    from delta_ds.spark.commands.merge import builder as merges

    pyspark = importlib.import_module("pyspark.sql")
    readwriter = importlib.import_module("pyspark.sql.readwriter")
    modules = (delta_ds, catalog, delta_log, builder, merges, table, pyspark, streaming, readwriter)
    public = [getattr(delta_ds, name) for name in delta_ds.__all__]
    held = [value for module in modules for value in vars(module).values()]
    classes = [value for value in (*public, *held) if isinstance(value, type)]
    inner = [value for one in classes for value in vars(one).values() if isinstance(value, type)]
    plain = [delta_ds.Scan, str, dict, list, set, pa.Table, Path, pyspark.SparkSession.Builder]
    # Names of the package are imported when they are asked for.
    functions = [name for module in modules for name in (*vars(module), *dir(module))]
    return frozenset(name for one in (*classes, *inner, *plain) for name in dir(one)) | set(functions)


@cache
def _known_options() -> frozenset[str]:
    from delta_ds.kernel.format.options.read import READ_OPTIONS
    from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS
    from delta_ds.kernel.format.options.write import WRITE_OPTIONS

    options = (*READ_OPTIONS, *WRITE_OPTIONS, *STREAM_READ_OPTIONS)
    names = {name.lower() for option in options for name in (option.name, *option.aliases)}
    return frozenset(names | {"checkpointlocation"})


def _option(block: Block, name: str) -> None:
    if name.lower().startswith("delta."):
        _property(block, name)
    elif name.lower() not in _known_options() and not _of_a_store(name):
        raise UnknownName(f"{block.where}: there is no option {name}")


def _of_a_store(name: str) -> bool:
    from delta_ds.kernel.storage.settings.vocabulary import vocabulary

    if name.startswith("storage."):
        return True
    return any(name.lower() in map(str.lower, vocabulary(scheme).by_name) for scheme in ("s3", "abfs", "gs"))


def _property(block: Block, name: str) -> None:
    from delta_ds.kernel.format.properties import PROPERTIES

    free = name.startswith(("delta.feature.", "delta.constraints.")) or not name.startswith("delta.")
    if not free and name.lower() not in {known.lower() for known in PROPERTIES}:
        raise UnknownName(f"{block.where}: there is no property {name}")


def _setting(block: Block, name: str) -> None:
    from delta_ds.kernel.format.options.ignored_settings import SETTINGS

    if name.startswith("spark.databricks.delta.properties.defaults."):
        _property(block, f"delta.{name.removeprefix('spark.databricks.delta.properties.defaults.')}")
    elif name.startswith(("spark.databricks.delta.", "spark.pydelta.")):
        documented = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
        short = name.removeprefix("spark.databricks.delta.")
        of_any_catalog = re.sub(r"^(spark\.pydelta\.catalog\.)[^.]+\.", r"\1<name>.", name)
        if (
            short not in {setting.name for setting in SETTINGS}
            and f"`{name}`" not in documented
            and f"`{of_any_catalog}`" not in documented
        ):
            raise UnknownName(f"{block.where}: there is no setting {name}")


def check_settings(block: Block) -> None:
    """Lines `name value` or `name=value` of a file such as spark-defaults.conf."""
    for line in block.text.splitlines():
        if line.strip() and not line.startswith("#"):
            parts = re.split(r"[=\s]+", line.strip(), maxsplit=1)
            if len(parts) != 2:
                raise UnknownName(f"{block.where}: neither a setting nor a comment: {line!r}")
            _setting(block, parts[0])


@cache
def _project() -> tuple[frozenset[str], frozenset[str]]:
    """The extras of the project, and every package that it names."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10; pytest brings it
        import tomli as tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    return frozenset(extras), frozenset(re.split(r"[\[<>=!~ ]", one)[0] for one in needed)


def check_shell(block: Block, commands: list[str] | None = None) -> None:
    """The syntax of a shell block, the extras and packages that it installs, targets of make, files, settings.

    Raises
    ------
    UnknownName
        One of them is not there; without the tag `check`, a program that is not looked into.
    """
    if commands is None:
        done = subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnknownName(f"{block.where}: {done.stderr}")
        commands = [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]
    for command in commands:
        words = shlex.split(command, comments=True)
        for name in _settings_given(words):
            _setting(block, name)
        while words and re.match(r"\w+=", words[0]):
            words = words[1:]
        known = _known_command(block, words)
        if not known and "check" not in block.tags:
            raise UnknownName(f"{block.where}: nobody runs {command!r}")


def _settings_given(words: list[str]) -> Iterator[str]:
    for option, value in zip(words, words[1:], strict=False):
        if option == "--conf":
            yield value.partition("=")[0]


def _known_command(block: Block, words: list[str]) -> bool:
    """Whether the command was looked into."""
    if not words:
        return True
    if "pip" in words[:3] and "install" in words:
        extras, packages = _project()
        for word in words[words.index("install") + 1 :]:
            found = re.fullmatch(r"([A-Za-z][\w.-]*)(?:\[([\w,-]+)\])?(?:[<>=!~].*)?", word)
            if found is None:
                continue
            if found[1] not in packages | {"delta-ds"} and "check" not in block.tags:
                raise UnknownName(f"{block.where}: the project knows no package {found[1]}")
            if found[1] == "delta-ds" and (
                unknown := set(filter(None, (found[2] or "").split(","))) - extras
            ):
                raise UnknownName(f"{block.where}: there is no extra {sorted(unknown)}")
        return True
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        if len(words) < 2 or words[1] in targets:
            return True
        raise UnknownName(f"{block.where}: there is no target {words[1]}")
    return words[0] in ("python", "spark-submit") and (ROOT / words[-1]).is_file()
