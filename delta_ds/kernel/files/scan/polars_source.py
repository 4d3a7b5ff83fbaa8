"""A scan as a source of polars' lazy frames: columns, filters and limits of a query reach the scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.scan.scan import Scan, package_of

if TYPE_CHECKING:
    import polars


def lazy_frame(scan: Scan) -> polars.LazyFrame:
    """The rows of a scan as a lazy frame; what a query does not need is not read.

    Raises
    ------
    ImportError
        polars is not installed.
    SchemaError
        The scan has a column twice.
    """
    pl = package_of("polars", "to_polars")
    from polars.io.plugins import register_io_source

    scan.refuse_repeated_columns()
    names = scan.schema.names

    def rows(
        columns: list[str] | None, filter_: polars.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        wanted = names if columns is None else columns
        yield from _frames(scan, wanted, filter_, limit)

    schema = pl.from_arrow(output_schema(scan.plan).empty_table()).schema
    return register_io_source(rows, schema=schema)


def _frames(
    scan: Scan, columns: list[str], filter_: polars.Expr | None, limit: int | None
) -> Iterator[polars.DataFrame]:
    """Frames of the rows that a filter may want; polars' own filter decides."""
    import polars as pl

    tree = None
    if filter_ is not None:
        from delta_ds.kernel.format.expressions.polars_filter import tree_of

        tree = tree_of(filter_, scan.snapshot.schema)
    left = limit
    for batch in scan.narrowed(columns, tree).to_batches():
        frame = pl.DataFrame(batch)
        if filter_ is not None:
            frame = frame.filter(filter_)
        if left is not None:
            frame = frame.head(left)
            left -= frame.height
        yield frame
        if left == 0:
            return
