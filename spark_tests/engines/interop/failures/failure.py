"""What a failure is: a table of the kernel, and what is done to it by an engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import INTEGER, STRING, StructField, StructType
from delta_ds.kernel.transaction.alter import definitions
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.testing import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", "c"]})


@dataclass(frozen=True)
class Engine:
    """A session in which tables are of one of the two.

    Attributes
    ----------
    spark
        The session.
    format
        `delta` or `pydelta`.
    table
        The class `DeltaTable`.
    """

    spark: SparkSession
    format: str
    table: Any

    def read(self, path: str, **options: Any) -> DataFrame:
        return self.spark.read.format(self.format).options(**options).load(path)

    def write(self, rows: DataFrame, path: str, mode: str = "append", **options: Any) -> None:
        rows.write.format(self.format).mode(mode).options(**options).save(path)

    def at(self, path: str) -> Any:
        return self.table.forPath(self.spark, path)

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text)


# --- tables


def plain(path: Path) -> None:
    log = DeltaLog(path)
    log.write(_ROWS)
    log.write(_ROWS)


def partitioned(path: Path) -> None:
    DeltaLog(path).write(_ROWS, options={"partitionBy": "id"})


def guarded(path: Path) -> None:
    schema = StructType((StructField("id", INTEGER, False), StructField("s", STRING)))
    create_table(DeltaLog(path), schema)
    definitions.add_constraint(DeltaLog(path), "positive", "id > 0", lambda _: None)


def append_only(path: Path) -> None:
    DeltaLog(path).write(_ROWS, options={"delta.appendOnly": "true"})


def with_changes(path: Path) -> None:
    DeltaLog(path).write(_ROWS, options={"delta.enableChangeDataFeed": "true"})


def of_the_future(path: Path) -> None:
    TableBuilder(path).create(_ROWS.schema, reader_features=["timeMachine"])


def parquet_files(path: Path) -> None:
    path.mkdir()
    pq.write_table(_ROWS, path / "part-0.parquet")


def nothing(path: Path) -> None:
    pass


def folder(path: Path) -> None:
    path.mkdir()


TABLES: dict[str, Callable[[Path], None]] = {
    made.__name__: made
    for made in (
        plain,
        partitioned,
        guarded,
        append_only,
        with_changes,
        of_the_future,
        nothing,
        folder,
        parquet_files,
    )
}

# The table, and what is done to it.
Failure = tuple[str, Callable[[Engine, str], Any]]


class Tables:
    """The tables that failures happen on: made once, copied for each."""

    def __init__(self, root: Path, failures: Mapping[str, Failure]) -> None:
        self._root = root
        self._failures = failures
        self._places = {name: root / f"of_{place}" for place, name in enumerate(failures)}
        for name, make in TABLES.items():
            make(root / name)

    def of(self, failure: str) -> Path:
        """A table of its own for a failure."""
        made = self._root / self._failures[failure][0]
        path = self._places[failure]
        if made.exists():
            shutil.copytree(made, path)
        return path

    def raised(self, engine: Engine, failure: str) -> Exception | None:
        """What a failure raises; None: nothing."""
        path = self.of(failure)
        try:
            self._failures[failure][1](engine, str(path))
        except Exception as error:
            return error
        return None
