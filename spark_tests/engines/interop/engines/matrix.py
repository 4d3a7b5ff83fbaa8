"""Write a table a feature, let every engine read it, and hold what each made of it against what was written."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass
from spark_tests.engines.interop.delta_spark import comparable
from spark_tests.engines.interop.engines.features import Feature, offered
from spark_tests.engines.interop.engines.judging import (
    CRASHED,
    NOT_ASKED,
    REFUSED,
    WRONG,
    Cell,
    judge,
    without_columns,
)
from spark_tests.engines.interop.engines.readers import JSON_TEXT, READERS, DeltaSparkReader
from spark_tests.engines.interop.engines.reasons import reason
from spark_tests.engines.interop.engines.tables import build_of
from spark_tests.engines.interop.written import Written

ROOT = Path(__file__).resolve().parents[4]
RECORD = ROOT / "docs" / "engines.json"
SECONDS = 300  # an answer that takes longer counts as a crash; the first of a JVM is the slowest


class Worker:
    """An engine in a process of its own, started anew when it dies.

    Attributes
    ----------
    versions, note
        What it said of itself.
    failed
        Why it could not be started; empty: it runs.
    """

    def __init__(self, engine: str, folder: Path) -> None:
        self._command = [
            sys.executable,
            "-m",
            "spark_tests.engines.interop.engines.worker",
            engine,
            str(folder),
        ]
        self._folder = folder.parent
        self._anew_after_errors = READERS[engine].anew_after_errors
        self._log = (folder / "errors.txt").open("ab")
        self.versions = self.note = self.failed = ""
        self._start()

    def _start(self) -> None:
        # chDB reads below its working directory only.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            cwd=self._folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        hello = self._answer() or {"failed": "its process ended before it answered"}
        self.failed = hello.get("failed", "")
        self.versions, self.note = hello.get("versions", self.versions), hello.get("note", self.note)

    def ask(self, question: dict[str, Any]) -> dict[str, str] | None:
        """Its answer; None: its process is gone, or did not answer."""
        if self._process.poll() is not None:
            self._start()
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps(question) + "\n").encode())
        self._process.stdin.flush()
        answer = self._answer()
        if answer is not None and "refused" in answer and self._anew_after_errors:
            self._end()
        return answer

    def _answer(self) -> dict[str, str] | None:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self._process.kill()
            self._process.wait()
            return None
        answer: dict[str, str] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process, and wait for it."""
        self._end()
        self._log.close()

    def _end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def measure(folder: Path, engines: Collection[str] = tuple(READERS), only: str = "") -> dict[str, Any]:
    """The matrix as `docs/engines.json` holds it.

    Parameters
    ----------
    folder
        An empty one for the tables.
    engines
        Titles of the engines to ask.
    only
        A part of the names of the tables to ask for; empty: all.
    """
    rows = [row for row in offered() if only in row.table]
    tables = _tables(folder, rows)
    theirs: dict[tuple[str, ...], _Theirs] = {}
    told: dict[str, dict[str, str]] = {}
    cells: dict[str, list[Cell]] = {}
    peers: dict[str, list[Cell | None]] = {}
    # delta-spark comes first, as others read what it writes.
    for engine in sorted(engines, key=lambda engine: engine != DeltaSparkReader.title):
        kept = folder / f"engine {len(told)}"
        kept.mkdir()
        worker = Worker(engine, kept)
        if engine == DeltaSparkReader.title and not worker.failed:
            theirs = _written_by(worker, folder / "theirs", rows)
        cells[engine] = [
            _cell(worker, row, tables[row.table], kept / f"{i}.arrow") for i, row in enumerate(rows)
        ]
        peers[engine] = [
            _of_theirs(worker, theirs[row.by_delta_spark], kept / f"theirs {i}.arrow")
            if row.by_delta_spark in theirs and cells[engine][i].grade in (REFUSED, CRASHED, WRONG)
            else None
            for i, row in enumerate(rows)
        ]
        worker.close()
        told[engine] = {"versions": worker.versions, "how": READERS[engine].how, "note": worker.note}
        if worker.failed:
            told[engine]["failed"] = worker.failed
    return {
        "engines": {engine: told[engine] for engine in engines},
        "features": [
            {
                "room": row.room, "title": row.title, "table": row.table, "version": row.version,
                "supports": [feature.name for feature in row.supports], "advice": row.advice,
                "cells": {engine: [cells[engine][i].grade, cells[engine][i].detail] for engine in engines},
                "of delta-spark": {
                    engine: peer.grade for engine in engines if (peer := peers[engine][i]) is not None
                },
            }
            for i, row in enumerate(rows)
        ],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Theirs:
    """A table that delta-spark wrote, and the rows that it reads of it."""

    path: Path
    rows: pa.Table


def _written_by(worker: Worker, folder: Path, rows: Collection[Feature]) -> dict[tuple[str, ...], _Theirs]:
    """The tables that rows of the matrix have delta-spark write, by the statements that do it."""
    made: dict[tuple[str, ...], _Theirs] = {}
    for statements in dict.fromkeys(row.by_delta_spark for row in rows if row.by_delta_spark):
        path = folder / str(len(made)) / "table"
        path.parent.mkdir(parents=True)
        places = {"{t}": f"delta.`{path}`", "{f}": f"delta.`{path.with_name('other')}`"}
        first = [_with_places(text, places) for text in statements]
        out = path.with_name("rows.arrow")
        question = {"path": str(path), "version": None, "files": None, "out": str(out), "first": first}
        answer = worker.ask(question)
        assert answer is not None and "rows" in answer, f"delta-spark: {statements}: {answer}"
        with pa.memory_map(str(out)) as file:
            made[statements] = _Theirs(path, pa.ipc.open_file(file).read_all())
    return made


def _with_places(statement: str, places: dict[str, str]) -> str:
    for name, place in places.items():
        statement = statement.replace(name, place)
    return statement


def _of_theirs(worker: Worker, table: _Theirs, out: Path) -> Cell:
    answer = _asked(
        worker, {"path": str(table.path), "version": None, "files": None, "out": str(out), "first": []}
    )
    if isinstance(answer, Cell):
        return answer
    with pa.memory_map(str(out)) as file:
        return judge(pa.ipc.open_file(file).read_all(), table.rows)


def _tables(folder: Path, rows: Collection[Feature]) -> dict[str, Written]:
    made: dict[str, Written] = {}
    for row in rows:
        if row.table not in made:
            made[row.table] = Written(folder / "tables" / row.table)
            build_of(row.table)(made[row.table])
        _check(row, made[row.table])
    return made


def _check(row: Feature, table: Written) -> None:
    """The table must have what its row says, and this package must read it as it was written."""
    snapshot = table.log.open_snapshot(row.version)
    lacking = [feature.name for feature in row.supports if not snapshot.table_state.supports(feature)]
    assert not lacking, f"the table {row.table} does not have {lacking}"
    cell = judge(Scan(snapshot).to_arrow(), table.expected(snapshot.version))
    assert cell.grade == "same rows", f"{row.table} by delta_ds: {cell.detail}"


def _cell(worker: Worker, row: Feature, table: Written, out: Path) -> Cell:
    files = _named_by_manifests(table.path) if row.manifests else None
    question = {"path": str(table.path), "version": row.version, "files": files, "out": str(out), "first": []}
    answer = _asked(worker, question)
    if isinstance(answer, Cell):
        return answer
    snapshot = table.log.snapshot(row.version)
    wanted = table.expected(snapshot.version)
    if row.manifests:
        wanted = without_columns(wanted, snapshot.schema, tuple(snapshot.partition_columns))
    with pa.memory_map(str(out)) as file:
        found = pa.ipc.open_file(file).read_all()
        return judge(*_with_variants_alike(found, wanted, snapshot.schema))


def _asked(worker: Worker, question: dict[str, Any]) -> Cell | None:
    """Why there are no rows; None: they are where the question wants them."""
    path = Path(question["path"])
    if worker.failed:
        return Cell(NOT_ASKED, reason(worker.failed, path))
    answer = worker.ask(question)
    if answer is None:
        return Cell(CRASHED, "the process ended, or did not answer")
    if "not asked" in answer:
        return Cell(NOT_ASKED, answer["not asked"])
    if "refused" in answer:
        return Cell(REFUSED, reason(answer["refused"], path))
    return None


def _with_variants_alike(found: pa.Table, wanted: pa.Table, schema: StructType) -> tuple[pa.Table, pa.Table]:
    """Both as JSON, the members of objects in order, in columns whose variants the engine told as JSON text."""
    told = [field.name for field in found.schema if JSON_TEXT in (field.metadata or {})]
    if not told:
        return found, wanted
    texts = comparable(wanted, schema)

    def ordered(column: pa.ChunkedArray) -> pa.Array:
        values = (
            None if text is None else json.loads(text, parse_float=Decimal) for text in column.to_pylist()
        )
        return pa.array([v if v is None else repr(_sorted(v)) for v in values], pa.string())

    for name in told:
        i = found.schema.get_field_index(name)
        found = found.set_column(i, name, ordered(found[name]))
        texts = texts.set_column(texts.schema.get_field_index(name), name, ordered(texts[name]))
    return found, texts


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((name, _sorted(member)) for name, member in value.items())
    return [_sorted(element) for element in value] if isinstance(value, list) else value


def _named_by_manifests(path: Path) -> list[str]:
    """The files as an engine of Hive tables takes them: the lines of the manifests are no URIs, but as they stand."""
    found = []
    for folder, _, names in os.walk(path / "_symlink_format_manifest"):
        for name in names:
            found += (Path(folder) / name).read_text().splitlines()
    assert found, f"{path} has no manifests"
    return [line.removeprefix("file:") for line in sorted(found)]


def merged(measured: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """The record with the cells of a measurement of some engines and tables in it."""
    new = {(row["table"], row["version"]): row for row in measured["features"]}
    rows = []
    for row in recorded["features"]:
        found = new.get((row["table"], row["version"]))
        if found is not None:
            cells = {**row["cells"], **found["cells"]}
            # Without delta-spark nothing was measured of its tables: what is known of them stays where it is asked for.
            peers = {**row["of delta-spark"], **found["of delta-spark"]}
            asked = (REFUSED, CRASHED, WRONG)
            row = {**row, "cells": cells,
                   "of delta-spark": {n: peer for n, peer in peers.items() if cells[n][0] in asked}}  # fmt: skip
        rows.append(row)
    return {"engines": {**recorded["engines"], **measured["engines"]}, "features": rows}


def worse(measured: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """The cells of a measurement that are worse than recorded, or that the record lacks, one line each."""
    known = {(row["table"], row["version"]): row["cells"] for row in recorded["features"]}
    lines = []
    for row in measured["features"]:
        before = known.get((row["table"], row["version"]), {})
        for engine, cell in row["cells"].items():
            if engine not in before:
                lines.append(f"{row['title']}: {engine} is not in the record")
            elif Cell(*cell).is_worse_than(Cell(*before[engine])):
                lines.append(
                    f"{row['title']}: {engine}: {': '.join(cell)}; recorded: {': '.join(before[engine])}"
                )
    return lines
