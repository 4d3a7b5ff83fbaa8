"""How each engine reads a table, a version of it, or a list of Parquet files, into Arrow.

Engines are imported by the process that asks them, and by no other.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

ICEBERG_METADATA = "metadata"  # the folder below a table in which UniForm puts what Iceberg engines read


class NotAsked(Exception):
    """The engine has no way to be asked this, which says nothing of the table."""


class Reader:
    """One engine.

    Attributes
    ----------
    title
        The head of its column.
    packages
        The distributions whose versions are told, the engine's own first.
    how
        The call that users would make.
    anew_after_errors
        An error leaves the engine in a state in which its next answer is wrong.
    """

    title: str
    packages: tuple[str, ...]
    how: str
    anew_after_errors = False

    def __init__(self, folder: Path) -> None:
        """Start the engine; `folder` is for what it has to keep."""

    def versions(self) -> str:
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in self.packages)

    def note(self) -> str:
        """What readers of the page should know of this run of the engine."""
        return ""

    def table(self, path: str, version: int | None) -> Any:
        """The rows of a table, at a version or the latest, as something of Arrow."""
        raise NotImplementedError

    def files(self, paths: Sequence[str]) -> Any:
        """The rows of Parquet files that are no table."""
        raise NotAsked("reads no list of files")

    def run(self, statements: Sequence[str]) -> None:
        """Write a table."""
        raise NotAsked("writes no tables here")


class DeltaSparkReader(Reader):
    title = "delta-spark"
    packages = ("delta-spark", "pyspark")
    how = 'spark.read.format("delta").load(path)'

    def __init__(self, folder: Path) -> None:
        from spark_tests.engines.interop.delta_spark import DeltaSpark, start

        self._session = start()
        self._asked = DeltaSpark(self._session)

    def table(self, path: str, version: int | None) -> pa.Table:
        from delta_ds.spark.base.schema import from_spark
        from spark_tests.engines.interop.delta_spark import encodings

        df = self._asked.load(path, version)
        # Spark hands variants over as JSON text only.
        schema = from_spark(df.schema)
        return as_json(self._asked.rows(df, schema), list(encodings(schema)))

    def files(self, paths: Sequence[str]) -> pa.Table:
        return self._session.read.parquet(*paths).toArrow()

    def run(self, statements: Sequence[str]) -> None:
        for statement in statements:
            self._session.sql(statement)


class DuckDBReader(Reader):
    title = "DuckDB"
    packages = ("duckdb",)
    how = "SELECT * FROM delta_scan(path)"

    def __init__(self, folder: Path) -> None:
        import duckdb

        config = {"extension_directory": str(folder), "home_directory": str(folder)}
        self._connection = duckdb.connect(config=config)
        self._note = "its extension `delta` was downloaded by `INSTALL delta`"
        try:
            self._connection.execute("INSTALL delta")
        except duckdb.Error as error:
            reason = "could not be reached" if "Failed to download" in str(error) else short(error)
            self._note = (
                "`INSTALL delta` failed, as the host of DuckDB's extensions "
                f"{reason}; the extension is that of the package `duckdb-extension-delta`"
            )
            self._connection.execute(f"INSTALL '{self._packaged()}'")
        self._connection.execute("LOAD delta")
        self._connection.execute("SET TimeZone = 'UTC'")

    def _packaged(self) -> Path:
        files = importlib.metadata.files("duckdb-extension-delta") or []
        found = [file for file in files if file.name == "delta.duckdb_extension"]
        assert len(found) == 1, found
        return Path(str(found[0].locate()))

    def note(self) -> str:
        return self._note

    def table(self, path: str, version: int | None) -> Any:
        at = "" if version is None else f", version => {version}"
        found = self._connection.sql(f"SELECT * FROM delta_scan('{path}'{at})")
        variants = [n for n, kind in zip(found.columns, found.types, strict=True) if "VARIANT" in str(kind)]
        # There is no way from a VARIANT of DuckDB to Arrow.
        columns = ", ".join(
            f'CAST("{n}" AS JSON) AS "{n}"' if n in variants else f'"{n}"' for n in found.columns
        )
        return as_json(
            found.project(columns).to_arrow_table() if variants else found.to_arrow_table(), variants
        )

    def files(self, paths: Sequence[str]) -> Any:
        names = ", ".join(f"'{path}'" for path in paths)
        query = f"SELECT * FROM read_parquet([{names}], hive_partitioning => false)"
        return self._connection.sql(query).to_arrow_table()


class PolarsReader(Reader):
    title = "Polars"
    packages = ("polars", "deltalake")
    how = "pl.scan_delta(path).collect()"

    def table(self, path: str, version: int | None) -> Any:
        import polars as pl

        return pl.scan_delta(path, version=version).collect().to_arrow()

    def files(self, paths: Sequence[str]) -> Any:
        import polars as pl

        return pl.scan_parquet(list(paths), hive_partitioning=False).collect().to_arrow()


class DeltaRsReader(Reader):
    title = "deltalake"
    packages = ("deltalake",)
    how = "QueryBuilder().register(name, DeltaTable(path)).execute(query)"

    def table(self, path: str, version: int | None) -> Any:
        import deltalake

        table = deltalake.DeltaTable(path, version=version)
        return pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())


class PandasReader(Reader):
    title = "pandas"
    packages = ("pandas", "deltalake")
    how = "DeltaTable(path).to_pandas()"

    def table(self, path: str, version: int | None) -> Any:
        import deltalake

        # What to_pandas converts; columns of pandas itself do not tell null from NaN.
        return deltalake.DeltaTable(path, version=version).to_pyarrow_table()

    def files(self, paths: Sequence[str]) -> Any:
        import pyarrow.parquet as pq

        return pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths])


class KernelReader(Reader):
    title = "Delta kernel"
    packages = ("delta-kernel-rust-sharing-wrapper",)
    how = "Table(url).snapshot(interface)"

    def table(self, path: str, version: int | None) -> Any:
        import delta_kernel_rust_sharing_wrapper as kernel

        if version is not None:
            raise NotAsked("reads the latest version only")
        url = Path(path).as_uri()
        interface = kernel.PythonInterface(url)
        snapshot = kernel.Table(url).snapshot(interface)
        scan = kernel.ScanBuilder(snapshot).build()
        return pa.Table.from_batches(scan.execute(interface))


class DaftReader(Reader):
    title = "Daft"
    packages = ("daft", "deltalake")
    how = "daft.read_deltalake(path)"

    def table(self, path: str, version: int | None) -> Any:
        import daft

        return daft.read_deltalake(path, version=version).to_arrow()

    def files(self, paths: Sequence[str]) -> Any:
        import daft

        return daft.read_parquet(list(paths)).to_arrow()


class ChdbReader(Reader):
    title = "chDB"
    packages = ("chdb",)
    how = "SELECT * FROM deltaLakeLocal(path)"
    anew_after_errors = True

    def table(self, path: str, version: int | None) -> Any:
        settings = "" if version is None else f" SETTINGS delta_lake_snapshot_version = {version}"
        return self._query(f"SELECT * FROM deltaLakeLocal('{path}'){settings}")

    def files(self, paths: Sequence[str]) -> Any:
        return pa.concat_tables(
            [
                self._query(f"SELECT * FROM file('{path}', Parquet) SETTINGS use_hive_partitioning = 0")
                for path in paths
            ]
        )

    def __init__(self, folder: Path) -> None:
        import chdb

        self._connection = chdb.connect(":memory:?user_files_path=/")

    def _query(self, query: str) -> pa.Table:
        settings = ("output_format_arrow_string_as_string = 1", "session_timezone = 'UTC'")
        separator = "," if " SETTINGS " in query else " SETTINGS"
        result = self._connection.query(f"{query}{separator} {', '.join(settings)}", "Arrow")
        return pa.ipc.open_file(pa.py_buffer(result.bytes())).read_all()


class PyIcebergReader(Reader):
    title = "PyIceberg"
    packages = ("pyiceberg",)
    how = "StaticTable.from_metadata(newest).scan()"

    def table(self, path: str, version: int | None) -> Any:
        from pyiceberg.table import StaticTable

        if version is not None:
            raise NotAsked("Iceberg's versions are not Delta's")
        folder = Path(path) / ICEBERG_METADATA
        files = sorted(folder.glob("*.metadata.json"), key=_last_updated) if folder.is_dir() else []
        if not files:
            raise NotAsked("no metadata of Iceberg lies beside the table")
        return StaticTable.from_metadata(str(files[-1])).scan().to_arrow()


def _last_updated(file: Path) -> tuple[int, str]:
    return json.loads(file.read_text())["last-updated-ms"], os.fspath(file)


READERS: dict[str, type[Reader]] = {
    reader.title: reader
    for reader in (
        DeltaSparkReader, DuckDBReader, PolarsReader, DeltaRsReader, PandasReader, KernelReader, DaftReader,
        ChdbReader, PyIcebergReader,
    )
}  # fmt: skip


JSON_TEXT = b"variants as JSON text"  # a key of a field's metadata


def as_json(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows, with a note on columns whose variants the engine told as JSON text."""
    noted = [f.with_metadata({JSON_TEXT: b"1"}) if f.name in names else f for f in rows.schema]
    return pa.table(rows.columns, schema=pa.schema(noted))


def short(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
