"""`Frames`: a table as pandas, polars, DuckDB and pyarrow have one; what `DeltaLog` and `Snapshot` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.base.arguments import checked

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    import pyarrow.dataset as ds

    from delta_ds.kernel.files.scan.scan import Scan
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot as Version


@checked
class Frames:
    """Rows of a table in other libraries; of a `DeltaLog` those of the newest version at the time of the call.

    Deleted rows, renamed columns, partition values and defaults are as Delta has them. `scan` has further ways to read
    a version. The libraries are optional: `pip install "delta-ds[polars]"`, `[duckdb]`, `[pandas]`.
    """

    def _pinned(self) -> Version:
        """The version whose rows are meant."""
        raise NotImplementedError

    def _scan(self, predicate: str | Expression | None, columns: Sequence[str] | None, timezone: str) -> Scan:
        from delta_ds.kernel.files.scan.scan import Scan

        return Scan(self._pinned(), predicate, columns, timezone)

    def to_arrow(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> pa.Table:
        """The rows as one Arrow table.

        Parameters
        ----------
        predicate, columns, timezone
            As in `Snapshot.scan`.

        Raises
        ------
        DeltaError
            As `Snapshot.scan` and `Scan.to_batches`.

        Examples
        --------
        >>> DeltaLog("/data/orders").to_arrow("country = 'DE'", ["id"]).to_pydict()
        {'id': [1, 3]}
        """
        return self._scan(predicate, columns, timezone).to_arrow()

    def to_pandas(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> pandas.DataFrame:
        """The rows as a DataFrame of pandas, types as pyarrow converts them.

        Parameters
        ----------
        predicate, columns, timezone
            As in `Snapshot.scan`: what is not asked for is not read.

        Raises
        ------
        ImportError
            pandas is not installed.
        DeltaError
            As `to_arrow`.

        Examples
        --------
        >>> DeltaLog("/data/orders").to_pandas("country = 'DE'")
           id country  amount
        0   1      DE    10.0
        1   3      DE    30.0
        """
        from delta_ds.kernel.files.scan.scan import package_of

        package_of("pandas", "to_pandas")
        rows: pandas.DataFrame = self._scan(predicate, columns, timezone).to_arrow().to_pandas()
        return rows

    def to_polars(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> polars.LazyFrame:
        """The rows as a lazy frame of polars: nothing is read until it is collected.

        The columns, filters and limits of the query reach this package: files are skipped by partition values and
        statistics, and columns that the query does not name are not read. polars evaluates its filters itself, too.
        From polars 2.0 on it also decodes local data files, where it gives the values of the table.

        Parameters
        ----------
        predicate, columns, timezone
            As in `Snapshot.scan`, before what the query says. `scan(...).to_polars()` is a frame with the rows.

        Raises
        ------
        ImportError
            polars is not installed.
        DeltaError
            As `Snapshot.scan`, and for a column that `columns` has twice; what `Scan.to_batches` raises comes when the
            frame is collected.

        Examples
        --------
        >>> import polars as pl
        >>> orders = DeltaLog("/data/orders").to_polars()
        >>> orders.filter(pl.col("country") == "DE").select(pl.col("amount").sum()).collect().item()
        40.0
        """
        from delta_ds.kernel.files.scan.polars_source import lazy_frame

        return lazy_frame(self._scan(predicate, columns, timezone))

    def to_duckdb(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB: nothing is read until it is queried, and each query reads again.

        The columns and simple filters of a query reach this package, as in `to_pyarrow_dataset`.

        Parameters
        ----------
        predicate, columns, timezone
            As in `Snapshot.scan`, before what the query says.
        connection
            The one that the relation belongs to; None for DuckDB's default. `relation.create_view("orders")` names it
            there.

        Raises
        ------
        ImportError
            DuckDB is not installed.
        DeltaError
            As `Snapshot.scan`, and for a column that `columns` has twice.

        Examples
        --------
        >>> import duckdb
        >>> with duckdb.connect() as connection:
        ...     orders = DeltaLog("/data/orders").to_duckdb(connection=connection)
        ...     connection.sql("SELECT sum(amount) FROM orders WHERE country = 'DE'").fetchall()
        [(40.0,)]
        """
        from delta_ds.kernel.files.scan.scan import package_of

        package = package_of("duckdb", "to_duckdb")
        found: duckdb.DuckDBPyRelation = (connection or package).from_arrow(
            self.to_pyarrow_dataset(predicate, columns, timezone=timezone)
        )
        return found

    def to_pyarrow_dataset(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> ds.Dataset:
        """The rows as a dataset of pyarrow, for what takes one: its `scanner`, `to_table`, `to_batches` and `head`.

        It reads by this package, so deletion vectors and column mapping are right, which a dataset of the files alone
        would not be. Columns and filters reach it: comparisons of columns with values of their types, null checks and
        lists of values skip files by statistics. A filter of more than eleven `&` and `|` in one another skips none.
        What is about files (`get_fragments`, `replace_schema`) is refused; joins and sorts take the rows into memory.

        Parameters
        ----------
        predicate, columns, timezone
            As in `Snapshot.scan`, before what is asked of the dataset.

        Raises
        ------
        DeltaError
            As `Snapshot.scan`, and for a column that `columns` has twice.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> orders = DeltaLog("/data/orders").to_pyarrow_dataset()
        >>> orders.to_table(columns=["id"], filter=pc.field("country") == "DE").to_pydict()
        {'id': [1, 3]}
        """
        from delta_ds.kernel.files.scan.arrow_dataset import ScanDataset

        return ScanDataset(self._scan(predicate, columns, timezone))
