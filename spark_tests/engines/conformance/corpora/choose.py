"""`python -m spark_tests.engines.conformance.corpora.choose FOLDER`: ship a part of the corpora in a folder.

Acceptance: small tables that show together whatever any small table shows (`sampling.covering`). Conflicts: all.
Differential: the programs written by hand, one a topic, with the kit that runs them. Writes: all, without messages.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

from spark_tests.engines.conformance.cases import Case, find_cases
from spark_tests.engines.conformance.corpora import SHIPPED
from spark_tests.engines.conformance.sampling import shows
from spark_tests.engines.conformance.ways_of_writing import named
from spark_tests.full_form import covering

LARGEST = 120_000
# Tests read these by their names.
NAMED = ("gen-variant-basic", "gen-variant-shredded")
# Tables of other projects may name the machine on which they were written.
_MACHINE = re.compile(rb"/(home|root|tmp|work|Users)/")


def main(whole: Path) -> None:
    for name in ("acceptance", "conflicts", "differential", "writes"):
        shutil.rmtree(SHIPPED / name, ignore_errors=True)
    ship_acceptance(whole / "acceptance")
    ship_conflicts(whole / "conflicts" / "conflicts.json")
    ship_differential(whole / "differential")
    ship_writes(whole / "writes")


def ship_acceptance(corpus: Path) -> None:
    """The chosen tables, and the licences of the projects that many of them come from."""
    small = [case for case in find_cases(corpus) if _size(case) <= LARGEST and not _names_a_machine(case)]
    chosen = {case.folder for case in covering(sorted(small, key=_size), _shows)}
    for folder in chosen | {corpus / "tables" / name for name in NAMED}:
        _copy(folder, SHIPPED / "acceptance" / "tables" / folder.name)
    _copy(corpus / "licenses", SHIPPED / "acceptance" / "licenses")


def ship_conflicts(file: Path) -> None:
    """Every case, one a line."""
    cases = json.loads(file.read_text(encoding="utf-8"))
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), ensure_ascii=False) for case in cases)
    (SHIPPED / "conflicts").mkdir()
    (SHIPPED / "conflicts" / file.name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def ship_differential(kit: Path) -> None:
    _copy(kit / "programs" / "handwritten", SHIPPED / "differential" / "programs" / "handwritten")
    for module in kit.glob("*.py"):
        _copy_file(module, SHIPPED / "differential" / module.name)


def ship_writes(kit: Path) -> None:
    """What is asked, where this package is meant to differ, and every outcome, without its message."""
    for name in ("cases.py", "accepted.json"):
        _copy_file(kit / name, SHIPPED / "writes" / name)
    for file in (kit / "recorded").glob("*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        lines = [
            f"{json.dumps(name)}: {json.dumps({'out': named(outcome), 'state': outcome['state']})}"
            for name, outcome in found.items()
        ]
        target = SHIPPED / "writes" / "recorded" / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _shows(case: Case) -> set[Hashable]:
    """What `shows` tells, and the types, features, properties and operations of every version that was read."""
    found = shows(case)
    found |= {("unreadable", entry["error"]) for entry in case.record["versions"].get("unreadable") or ()}
    for read in case.record["reads"].values():
        found.add(("operation", read.get("operation")))
        found |= {("property", name) for name in read.get("properties") or ()}
        found |= {("feature", name) for name in read.get("reader_features") or ()}
        found |= {("feature", name) for name in read.get("writer_features") or ()}
        if schema := read.get("schema"):
            found |= set(_types(json.loads(schema) if isinstance(schema, str) else schema))
    return found


def _types(node: Any, depth: int = 0) -> Iterator[Hashable]:
    """Every type of a schema by its name, in columns and below them."""
    if isinstance(node, str):
        yield ("type", node.partition("(")[0], depth > 1)
        return
    yield ("type", node["type"], depth > 1)
    for field in node.get("fields", ()):
        yield from _types(field["type"], depth + 1)
    for part in ("elementType", "keyType", "valueType"):
        if part in node:
            yield from _types(node[part], depth + 1)


def _files(case: Case) -> Iterator[Path]:
    return (file for file in case.folder.rglob("*") if file.is_file())


def _size(case: Case) -> int:
    return sum(file.stat().st_size for file in _files(case))


def _names_a_machine(case: Case) -> bool:
    return any(_MACHINE.search(file.read_bytes()) for file in _files(case))


def _copy(source: Path, target: Path) -> None:
    """Copy the files of a folder, without their modes: the whole corpora may be read-only."""
    for file in source.rglob("*"):
        if file.is_file():
            _copy_file(file, target / file.relative_to(source))


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
