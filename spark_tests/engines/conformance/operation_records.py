"""Every operation, run and looked at as the history has it: its name, its parameters and the names of its metrics.

What delta-spark left in the logs of the programs of `corpora/operations/cases.py` is recorded in `operations.json`
beside it. `python spark_tests/engines/conformance/operation_records.py FILE`, run with delta-spark's Python, writes it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).with_name("corpora") / "operations"
Record = dict[str, Any]
# What differs from run to run.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")
_EXPRESSION_ID = re.compile(r"#\d+L?")


@dataclass
class Place:
    """Where a program runs: the session, `DeltaTable`, and the table by folder, by name and quoted for SQL."""

    spark: SparkSession
    delta: Any
    folder: str
    name: str
    other: str

    @property
    def quoted(self) -> str:
        return f"delta.`{self.folder}`"


def programs() -> dict[str, Sequence[str | Callable[[Place], object]]]:
    """The programs, by their names."""
    spec = importlib.util.spec_from_file_location("operation_cases", FOLDER / "cases.py")
    assert spec is not None and spec.loader is not None
    asked = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(asked)
    found: dict[str, Sequence[str | Callable[[Place], object]]] = asked.CASES
    return found


def recorded() -> dict[str, list[Record]]:
    """What delta-spark left, by the names of programs."""
    found: dict[str, list[Record]] = json.loads((FOLDER / "operations.json").read_text())
    return found


# Where this package is meant to differ: parts of a record by program, and why.
ACCEPTED: dict[str, tuple[frozenset[str], str]] = {
    "VACUUM RETAIN": (
        frozenset(["parameters"]),
        "the retention that is given counts; delta-spark passes over it",
    ),
    "vacuum by method": (
        frozenset(["parameters"]),
        "the retention that is given counts; delta-spark passes over it",
    ),
    "CREATE TABLE CLONE of a name": (
        frozenset(["tags"]),
        "a tag says where the source lies, for deep clones of this one; delta-spark loses the path with the name",
    ),
    "DROP CONSTRAINT IF EXISTS": (
        frozenset(["isolationLevel"]),
        "nothing is changed, and so no metadata is committed, which would be a conflict for every other writer",
    ),
}
# Parameters that hold a condition, in its programs: it is shown as it was resolved, and not as it was optimized, which
# costs a command some milliseconds (`cast(1 as bigint)` in place of `1`, `LIKE` in place of `StartsWith`).
_CONDITIONS = frozenset(
    ["predicate", "matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates"]
)
_OF_ROWS = frozenset(["DELETE", "UPDATE", "MERGE"])
# What delta-spark refuses, or Spark's own parser there.
WITHOUT_RECORD = frozenset(["ANALYZE", "DELETE subquery", "builder createOrReplace"])


def differences(name: str, found: list[Record]) -> list[str]:
    """What of the records of a program is not as delta-spark has it, in words."""
    wanted = recorded()[name]
    operations = [[record["operation"] for record in records] for records in (wanted, found)]
    if operations[0] != operations[1]:
        return [f"operations {operations[1]}, and not {operations[0]}"]
    accepted = ACCEPTED[name][0] if name in ACCEPTED else frozenset()
    return [
        f"{part} of {theirs['operation']}: {ours.get(part)!r}, and not {theirs.get(part)!r}"
        for theirs, ours in zip(map(_comparable, wanted), map(_comparable, found), strict=True)
        for part in sorted(theirs.keys() | ours.keys())
        if part not in accepted and theirs.get(part) != ours.get(part)
    ]


def _comparable(record: Record) -> Record:
    """A record without the order of keys in its texts, and of the features of a protocol, which are sets."""
    parameters = {name: _parsed(text) for name, text in record["parameters"].items()}
    if record["operation"] in _OF_ROWS:
        parameters |= {name: "<condition>" for name in _CONDITIONS & parameters.keys()}
    return {**record, "parameters": parameters}


def _parsed(text: Any) -> Any:
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
    if isinstance(value, dict):
        return {
            name: sorted(one) if name.endswith("Features") and one else one for name, one in value.items()
        }
    return value if isinstance(value, list) else text


def run(spark: SparkSession, delta: Any, steps: Sequence[Any], root: Path, number: int) -> list[Record]:
    """Run a program, and read what its commits say of themselves.

    Parameters
    ----------
    root
        A new folder; the current schema of the session lies in its folder `schema`.
    number
        Another one for each program.
    """
    name = f"operations_{number}"
    place = Place(spark, delta, str(root / name), name, str(root / f"other_{number}"))
    try:
        for step in steps:
            if isinstance(step, str):
                text = step.format(b=place.quoted, t=name, p=place.folder, o=place.other)
                spark.sql(text).collect()
            else:
                step(place)
        folder = Path(place.folder)
        return [
            _record(commit, root, number)
            for commit in commits(folder if (folder / "_delta_log").is_dir() else root / "schema" / name)
        ]
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def commits(folder: Path) -> list[dict[str, Any]]:
    """`commitInfo` of every version."""
    return [
        action["commitInfo"]
        for file in sorted((folder / "_delta_log").glob("[0-9]" * 20 + ".json"))
        for action in map(json.loads, file.read_text().splitlines())
        if "commitInfo" in action
    ]


def _record(info: dict[str, Any], root: Path, number: int) -> Record:
    parameters = json.dumps(info["operationParameters"], sort_keys=True)
    parameters = parameters.replace(f"{root}/operations_{number}", "{p}").replace(
        f"{root}/other_{number}", "{o}"
    )
    parameters = parameters.replace(f"operations_{number}", "{t}")
    for pattern, text in ((_UUID, "<uuid>"), (_TIME, "<time>"), (_EXPRESSION_ID, "#<id>")):
        parameters = pattern.sub(text, parameters)
    return {
        "operation": info["operation"],
        "parameters": json.loads(parameters),
        "metrics": sorted(info.get("operationMetrics", {})),
        "isBlindAppend": info.get("isBlindAppend"),
        "isolationLevel": info.get("isolationLevel"),
        **({"userMetadata": info["userMetadata"]} if "userMetadata" in info else {}),
        **({"tags": info["tags"]} if "tags" in info else {}),
    }


def run_all(
    spark: SparkSession, delta: Any, only: str = ""
) -> tuple[dict[str, list[Record]], dict[str, str]]:
    """Run all programs; what they left, and the errors of those that failed."""
    found: dict[str, list[Record]] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        spark.sql(f"CREATE SCHEMA operation_records LOCATION '{folder}/schema'")
        spark.sql("USE operation_records")
        for number, (name, steps) in enumerate(programs().items()):
            if only not in name:
                continue
            try:
                found[name] = run(spark, delta, steps, Path(folder), number)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"[:600]
        spark.sql("USE default")
        spark.sql("DROP SCHEMA operation_records CASCADE")
    return found, failed


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    table = importlib.import_module("delta.tables").DeltaTable
    records, errors = run_all(SparkSession.builder.getOrCreate(), table)
    Path(sys.argv[1]).write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
    for name, error in errors.items():
        print(name, error)
