"""TPC-DS tables as Parquet files, and its queries for Spark: what the part `lhbench` starts from.

    python -m benchmarks.lhbench_tables FOLDER SCALE

Runs in an environment of its own with duckdb, duckdb-extension-tpcds of the same release, and sqlglot. Source: Jain et
al., Analyzing and Comparing Lakehouse Storage Systems, CIDR 2023; TPC-DS.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# Scale 1 has about 3 million rows of store_sales.
_ROWS_OF_A_GROUP = 200_000


def write_tables(folder: Path, scale: float) -> Path:
    """Write `source/TABLE/0.parquet` and `queries/NN.sql`."""
    import duckdb
    import duckdb_extension_tpcds
    import sqlglot

    settings: dict[str, Any] = {"allow_unsigned_extensions": "true", "memory_limit": "4GB"}
    database = duckdb.connect(config=settings)
    place = Path(duckdb_extension_tpcds.__file__).parent
    database.execute(f"LOAD '{next(place.rglob('*.duckdb_extension'))}'")
    database.execute(f"CALL dsdgen(sf={scale})")
    for (table,) in database.execute("SHOW TABLES").fetchall():
        target = folder / "source" / table
        target.mkdir(parents=True)
        options = f"FORMAT parquet, ROW_GROUP_SIZE {_ROWS_OF_A_GROUP}"
        database.execute(f"COPY {table} TO '{target}/0.parquet' ({options})")
    (folder / "queries").mkdir()
    for number, text in database.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall():
        (folder / "queries" / f"{number:02}.sql").write_text(sqlglot.transpile(text, "duckdb", "spark")[0])
    return folder


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]), float(sys.argv[2]))
