"""Programs of operations, with what delta-spark made of them: rows, schemas, history, errors must agree.

Runs the programs made of operations that this package offers, with the interpreter of their kit (see
`conformance/corpora`): a part of them on the native scan and the native writer, and a part that has most operations,
options and tags on the portable path; all of them on both if DELTA_DS_FULL=1 is set.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from spark_tests.behaviour.spark.session_settings import session_settings
from spark_tests.engines.conformance.corpora import corpus
from spark_tests.full_form import FULL, covering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIT = corpus("differential")
# A program with an operation that nobody knows here is left out.
OFFERED = frozenset(
    [
        "add_columns",
        "add_constraint",
        "add_feature",
        "alter_column",
        "cdf",
        "clone",
        "cluster_by",
        "conf",
        "convert",
        "create",
        "drop_columns",
        "drop_constraint",
        "drop_feature",
        "generate",
        "is_delta",
        "mark",
        "read",
        "rename_column",
        "restore",
        "set_properties",
        "to_df",
        "unset_properties",
        "upgrade_protocol",
        "vacuum",
        "delete",
        "update",
        "merge",
        "optimize",
        "race",
        "stream",
        "write",
    ]
)


# The two paths under the same calls; the portable one is what a session has that Spark keeps its internals from.
# Tables are tiny and plans many, so what would cost time is compiling them: as in the kit's own sessions.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
NATIVE = {**QUICK, "spark.pydelta.nativeScan": "true", "spark.pydelta.nativeWrite": "true"}
PORTABLE = {**QUICK, "spark.pydelta.nativeScan": "false", "spark.pydelta.nativeWrite": "false"}

# What even the native path leaves to the portable one, by the words of its reason.
LEFT_TO_PORTABLE = ("change feed", "change data feed", "identity", "rows keep their ids")


def _offered() -> dict[Path, Any]:
    found = {path: json.loads(path.read_text()) for path in sorted(KIT.glob("programs/*/*.json"))}
    return {path: program for path, program in found.items() if _operations(program) <= OFFERED}


def _operations(program: Any) -> set[str]:
    return {op["op"] for op in program["ops"]}


def _shows(program: Any) -> set[Hashable]:
    """What a program is made of, as far as one path could treat it unlike the other."""
    found: set[Hashable] = {("tag", tag) for tag in program.get("tags", ())}
    for op, result in zip(program["ops"], program["expect"]["ops"], strict=True):
        name = op["op"]
        found |= {(name, "ok", result["ok"]), (name, op.get("mode"))}
        found |= {(name, "option", key) for key in op.get("options") or ()}
        found |= {("clause", clause["when"], clause["do"]) for clause in op.get("clauses") or ()}
    return found


PROGRAMS = _offered()
CHOSEN = list(PROGRAMS)
if not FULL:
    CHOSEN = covering(CHOSEN, lambda path: _shows(PROGRAMS[path]), share=0.7)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long,
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


@pytest.mark.sampled
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_on_the_native_path_ends_as_on_delta_spark(
    spark: SparkSession, kit: ModuleKit, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with session_settings(spark, NATIVE), caplog.at_level("WARNING", "delta_ds"):
        assert _differences(spark, kit, PROGRAMS[path], tmp_path) == []
    left = {record.getMessage() for record in caplog.records if record.getMessage().startswith("portable_")}
    assert {text for text in left if not any(word in text for word in LEFT_TO_PORTABLE)} == set()


@pytest.mark.parametrize("path", CHOSEN, ids=lambda path: path.stem)
def test_program_on_the_portable_path_ends_as_on_delta_spark(
    spark: SparkSession, kit: ModuleKit, path: Path, tmp_path: Path
) -> None:
    with session_settings(spark, PORTABLE):
        assert _differences(spark, kit, PROGRAMS[path], tmp_path) == []


def _differences(spark: SparkSession, kit: ModuleKit, program: Any, folder: Path) -> list[Any]:
    interpreter = kit.interpreter.Interpreter(kit.interpreter.make_backend("pydelta", spark), str(folder))
    results = interpreter.run(program)
    found: list[Any] = kit.compare.compare_program(
        program, results, interpreter.observe(program), "family", set()
    )
    return found
