"""The measured process of the part `commands`: one Spark session that runs one command in several cases.

    python -m benchmarks.command_worker '{"format": "pydelta", "command": "delete", "table": "plain", ...}'

The format is pydelta (this package) or delta (delta-spark, whose interpreter runs this file then): the calls are the
same. What changes a table runs on a fresh copy of it, after one on a small table that does not count. Prints a line
of JSON for each. Only pyspark and the standard library are needed here.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.process_tree import Watch
from benchmarks.spark_writes import data_files, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Settings = Mapping[str, Any]
# Of both sides: the defaults, 200 and 10,000 tasks, are made for clusters, and cost delta-spark most.
CONFS = {"spark.sql.shuffle.partitions": "8", "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}
_OPTIMIZE = "spark.databricks.delta.optimize"


@dataclass(frozen=True)
class Target:
    """A copy of a table that a command is about to change.

    Attributes
    ----------
    format
        pydelta or delta.
    sizes
        What `command_tables.Sizes` says of it.
    source
        The folder of the rows to merge.
    """

    spark: SparkSession
    format: str
    path: str
    sizes: Mapping[str, int]
    source: str | None

    @property
    def table(self) -> Any:
        """The `DeltaTable` of whose package it is."""
        package = import_module("delta_ds" if self.format == "pydelta" else "delta.tables")
        return package.DeltaTable.forPath(self.spark, self.path)

    @property
    def one_range(self) -> str:
        """The hundredth part of the rows that lies together, in one file or two."""
        first = self.sizes["rows"] // 2
        return f"id BETWEEN {first} AND {first + self.sizes['rows'] // 100 - 1}"

    def rows(self) -> DataFrame:
        return self.spark.read.format(self.format).load(self.path)


SPREAD = "pmod(id, 100) = 7"
_SET = {"amount": "amount + 1", "city": "'Essen'"}


def _merge(target: Target) -> object:
    source = target.spark.read.parquet(str(target.source))
    merge = target.table.alias("t").merge(source.alias("s"), "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _vacuum(target: Target, how: str) -> object:
    if target.format == "delta":  # which has this in SQL only
        return target.spark.sql(f"VACUUM delta.`{target.path}` {how}")
    return target.table.vacuum(dryRun="DRY RUN" in how, mode="LITE" if "LITE" in how else "FULL")


# ---------------------------------------------------------------- what is to be found afterwards


def _digest(target: Target, _: Any) -> str:
    """The rows: their number, and a hash of them that does not depend on their order."""
    count, digest = target.rows().selectExpr("count(*)", "bit_xor(xxhash64(*))").collect()[0]
    return f"{count:,} rows, {digest & 0xFFFFFFFF:08x}"


def _left(target: Target, _: Any) -> str:
    return f"{len(data_files(Path(target.path))):,} files left"


def _nothing(target: Target, found: Any) -> str:
    metrics = found.collect()[0].metrics
    return f"{metrics.numFilesRemoved} files rewritten"


def _files(found: Any) -> str:
    metrics = found.collect()[0].metrics
    return f"{metrics.numFilesRemoved:,} files became {metrics.numFilesAdded:,}"


@dataclass(frozen=True)
class Case:
    """One measurement.

    Attributes
    ----------
    run
        The command: what is timed.
    answer
        What all sides must find afterwards.
    shown
        What one side says of its result, if anything.
    confs
        Settings of the session.
    changes
        Whether it needs a copy of its own: it changes the table, or must not find it known from a round before.
    """

    run: Callable[[Target], object]
    answer: Callable[[Target, Any], str] = _digest
    shown: Callable[[Any], str] | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    changes: bool = True


COMMANDS: dict[str, dict[str, Case]] = {
    "delete": {
        "delete 1 %, lying together": Case(lambda t: t.table.delete(t.one_range)),
        "delete 1 %, spread over all files": Case(lambda t: t.table.delete(SPREAD)),
    },
    "update": {
        "update 1 %, lying together": Case(lambda t: t.table.update(t.one_range, _SET)),
        "update 1 %, spread over all files": Case(lambda t: t.table.update(SPREAD, _SET)),
    },
    "merge": {"merge, half of the source matched": Case(_merge)},
    "compaction": {
        "compaction": Case(lambda t: t.table.optimize().executeCompaction(), shown=_files),
    },
    "zorder": {
        "z-order by 2 columns": Case(
            lambda t: t.table.optimize().executeZOrderBy("amount", "sold_on"),
            shown=_files,
            confs={f"{_OPTIMIZE}.maxFileSize": str(64 << 20)},
        ),
    },
    "planning": {
        "compaction with nothing to do": Case(
            lambda t: t.table.optimize().executeCompaction(),
            answer=_nothing,
            confs={f"{_OPTIMIZE}.minFileSize": "1"},
        ),
    },
    "vacuum": {
        "vacuum, dry run": Case(lambda t: _vacuum(t, "DRY RUN"), answer=_left, changes=False),
        "vacuum, lite, dry run": Case(lambda t: _vacuum(t, "LITE DRY RUN"), answer=_left, changes=False),
        "vacuum": Case(lambda t: _vacuum(t, ""), answer=_left),
        "vacuum, lite": Case(lambda t: _vacuum(t, "LITE"), answer=_left),
    },
}


# ---------------------------------------------------------------- running them


def measure(spark: SparkSession, settings: Settings) -> Iterator[dict[str, Any]]:
    """Run all cases of a command: on the tables that warm up the session, then `rounds` times on the large one.

    Yields
    ------
    dict
        The case, the size of its table, and its cost and what was found; or why it failed.
    """
    for name, case in COMMANDS[settings["command"]].items():
        for size in [*settings["warm"], *["large"] * settings["rounds"]]:
            record = {"case": name, "size": size, **_attempt(spark, settings, size, case)}
            yield record
            if "failed" in record:
                break


def _attempt(spark: SparkSession, settings: Settings, size: str, case: Case) -> dict[str, Any]:
    try:
        return once(spark, settings, size, case)
    except Exception as error:  # noqa: BLE001 - it is shown, and the others are measured
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"failed": f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]}


def once(spark: SparkSession, settings: Settings, size: str, case: Case) -> dict[str, Any]:
    """Run a case on a copy of the small or the large table, or on the table itself if it stays as it is."""
    tables = settings["tables"][size]
    source = tables[settings["table"]]
    copy = linked_copy(source, settings["folder"]) if case.changes else nullcontext(source)
    with copy as path, _confs(spark, case.confs):
        target = Target(spark, settings["format"], path, settings["sizes"][size], tables.get("source"))
        warm_cache(path)
        os.sync()
        with Watch() as watch:
            result = case.run(target)
        found = {**asdict(watch.used), "answer": case.answer(target, result)}
        return {**found, "shown": case.shown(result) if case.shown else ""}


@contextmanager
def linked_copy(source: str, folder: str) -> Iterator[str]:
    """A copy of a table, gone afterwards. Data files are links: no command changes one, they only come and go."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        copy = Path(scratch) / "table"
        shutil.copytree(source, copy, copy_function=_copied)
        yield str(copy)


def _copied(source: str, target: str) -> None:
    if "_delta_log" in Path(source).parts:
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def warm_cache(path: str) -> None:
    """Read all data files once, so that nobody waits for the device."""
    for file in data_files(Path(path)):
        with file.open("rb") as opened:
            while opened.read(1 << 22):
                pass


@contextmanager
def _confs(spark: SparkSession, confs: Mapping[str, str]) -> Iterator[None]:
    for key, value in confs.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in confs:
            spark.conf.unset(key)


def main(settings: Settings) -> None:
    cache = Path(settings["folder"]) / "cache"
    cache.mkdir(mode=0o700)
    os.environ["DELTA_DS_CACHE"] = str(cache)  # nothing of a table is to be found, but of classes
    (cache / "classes").symlink_to(settings["classes"], target_is_directory=True)
    with Watch() as watch:
        spark = session(settings)
    for key, value in CONFS.items():
        spark.conf.set(key, value)
    _say({"spark": spark.version, "session": asdict(watch.used)})
    for record in measure(spark, settings):
        _say(record)
    spark.stop()


def _say(record: Mapping[str, Any]) -> None:
    print(MARK + json.dumps(record), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
