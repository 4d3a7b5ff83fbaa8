"""Programs of operations, with what delta-spark made of them: rows, schemas, history, errors must agree.

Runs the programs made of operations that this package offers, with the interpreter of the kit in
`../shared/differential` (or the folder that DELTA_DS_DIFFERENTIAL names).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIT = Path(
    os.environ.get(
        "DELTA_DS_DIFFERENTIAL", Path(__file__).resolve().parents[2].parent / "shared" / "differential"
    )
)
# Writes, schema changes, properties, reads. The other operations come with their commands.
OFFERED = frozenset(
    [
        "add_columns",
        "add_constraint",
        "add_feature",
        "alter_column",
        "cdf",
        "cluster_by",
        "conf",
        "create",
        "drop_columns",
        "drop_constraint",
        "drop_feature",
        "is_delta",
        "mark",
        "read",
        "rename_column",
        "set_properties",
        "to_df",
        "unset_properties",
        "upgrade_protocol",
        "write",
    ]
)


def _programs() -> list[Path]:
    return sorted(KIT.glob("programs/*/*.json"))


def _operations(program: Any) -> set[str]:
    return {op["op"] for op in program["ops"]}


PROGRAMS = [path for path in _programs() if _operations(json.loads(path.read_text())) <= OFFERED]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not PROGRAMS, reason=f"no differential kit at {KIT}; set DELTA_DS_DIFFERENTIAL to its folder"
    ),
]


@pytest.fixture(scope="module")
def kit() -> Iterator[Any]:
    """The kit's modules, which find each other by plain names."""
    names = ("interpreter", "compare", "errors", "values")
    sys.path.insert(0, str(KIT))
    try:
        import compare
        import interpreter

        yield ModuleKit(interpreter, compare)
    finally:
        sys.path.remove(str(KIT))
        for name in names:
            sys.modules.pop(name, None)


class ModuleKit:
    def __init__(self, interpreter: ModuleType, compare: ModuleType) -> None:
        self.interpreter, self.compare = interpreter, compare


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_ends_as_on_delta_spark(
    spark: SparkSession, kit: ModuleKit, path: Path, tmp_path: Path
) -> None:
    program = json.loads(path.read_text())
    results, tables = _run(spark, kit, program, tmp_path)
    assert kit.compare.compare_program(program, results, tables, "family", set()) == []


def _run(spark: SparkSession, kit: ModuleKit, program: Any, folder: Path) -> tuple[list[Any], dict[str, Any]]:
    interpreter = kit.interpreter.Interpreter(kit.interpreter.make_backend("pydelta", spark), str(folder))
    return interpreter.run(program), interpreter.observe(program)
