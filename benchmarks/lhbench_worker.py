"""The measured process of the part `lhbench`: one Spark session that runs its parts one after the other.

    python -m benchmarks.lhbench_worker '{"format": "pydelta", "data": "/tmp/data", "folder": "/tmp/x", ...}'

The format is pydelta, delta (delta-spark, whose interpreter runs this file then) or parquet, which has no row changes.
The statements are the same for all. Prints a line of JSON for each. Only pyspark and the standard library are needed.
"""

from __future__ import annotations

import decimal
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command_worker import CONFS
from benchmarks.measure import MARK
from benchmarks.process_tree import Watch
from benchmarks.spark_writes import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

LOAD, QUERIES, REFRESH, MERGES, FILES = "load", "queries", "refresh", "merges", "files"
PARTS = (LOAD, QUERIES, REFRESH, MERGES, FILES)
OF_PARQUET = (LOAD, QUERIES, FILES)
_BY_DATE = "store_sales"
# The first day of 2000, as TPC-DS counts days.
_FIRST_DAY = 2451545
_ROUNDS = 3
_SHARES = (0.0001, 0.001, 0.01, 0.1)


@dataclass(frozen=True)
class Case:
    """One measurement: its part, what it is called, what it belongs to in the sums, and the call; rows are digested."""

    part: str
    name: str
    of: str
    run: Callable[[], Iterable[Iterable[Any]] | None]


class Run:
    """One session over one set of tables.

    Parameters
    ----------
    settings
        `format`; `data`, a folder of `lhbench_tables`; `folder` for tables; `rows` of the merged table; `files` that
        are written; `numbers` of the queries, none: all.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, Any]) -> None:
        self.spark, self.settings = spark, settings
        # By the name that both packages take.
        self.format = "parquet" if settings["format"] == "parquet" else "delta"
        self.data = Path(settings["data"])
        spark.sql(f"CREATE DATABASE lhbench LOCATION '{settings['folder']}/lhbench'")
        spark.sql("USE lhbench")

    def cases(self) -> Iterator[Case]:
        """All cases, in the order in which they depend on each other."""
        yield from self._load()
        yield from self._queries()
        if self.format != "parquet":
            yield from self._refresh()
            yield from self._merges()
        yield from self._files()

    def _source(self, table: str) -> DataFrame:
        return self.spark.read.parquet(str(self.data / "source" / table))

    def _load(self) -> Iterator[Case]:
        for table in sorted(path.name for path in (self.data / "source").iterdir()):
            rows = self._source(table)
            write = rows.write.format(self.format)
            if table == _BY_DATE:
                by_date = rows.repartition(8, "ss_sold_date_sk").write.format(self.format)
                write = by_date.partitionBy("ss_sold_date_sk")
            kind = f"{table} into partitions" if table == _BY_DATE else "the other tables"
            yield Case(LOAD, table, kind, partial(write.saveAsTable, table))

    def _queries(self) -> Iterator[Case]:
        chosen = set(self.settings.get("numbers") or ())
        for path in sorted((self.data / "queries").iterdir()):
            text = path.read_text()
            if not chosen or int(path.stem) in chosen:
                yield Case(QUERIES, path.stem, "queries", partial(self._found, text))

    def _refresh(self) -> Iterator[Case]:
        """Days that are deleted and come back, returns that are deleted by a condition, and an upsert."""
        sales = f"parquet.`{self.data}/source/store_sales`"
        returns = f"parquet.`{self.data}/source/store_returns`"
        for n in range(_ROUNDS):
            first = _FIRST_DAY + 100 * n
            days = f"ss_sold_date_sk BETWEEN {first} AND {first + 6}"
            source = (
                "SELECT * EXCEPT (sr_return_quantity), sr_return_quantity + 1 AS sr_return_quantity "
                f"FROM {returns} WHERE sr_ticket_number % 33 = {n}"
            )
            keys = "t.sr_item_sk = s.sr_item_sk AND t.sr_ticket_number = s.sr_ticket_number"
            every = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            statements = {
                "deletes of whole partitions": f"DELETE FROM store_sales WHERE {days}",
                "deletes by a condition": f"DELETE FROM store_returns WHERE sr_ticket_number % 100 = {n}",
                "inserts": f"INSERT INTO store_sales BY NAME SELECT * FROM {sales} WHERE {days}",
                "merges": f"MERGE INTO store_returns t USING ({source}) s ON {keys} {every}",
            }
            for of, text in statements.items():
                yield Case(REFRESH, f"{of} {n}", of, partial(self._done, text))
        check = (
            "SELECT count(*), sum(ss_quantity), (SELECT count(*) FROM store_returns), "
            "(SELECT sum(sr_return_quantity) FROM store_returns) FROM store_sales"
        )
        yield Case(REFRESH, "rows afterwards", "a sum afterwards", partial(self._found, check))

    def _merges(self) -> Iterator[Case]:
        """Merges of a growing share of the rows, half of them known and half new, and a query after each."""
        rows = int(self.settings["rows"])
        self._done(
            "CREATE TABLE keyed (id BIGINT, a DOUBLE, b STRING, c STRING, d INT, e TIMESTAMP) USING delta"
        )
        whole = self._rows(0, rows, 1, 0).repartition(20).write.format("delta").mode("append")
        yield Case(MERGES, f"{rows:,} rows", "load", partial(whole.saveAsTable, "keyed"))
        end = rows
        for share in _SHARES:
            half = max(1, int(rows * share / 2))
            known = self._rows(0, rows, rows // half, 7)
            known.union(self._rows(end, end + half, 1, 7)).createOrReplaceTempView("changes")
            end += half
            text = (
                "MERGE INTO keyed t USING changes s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            yield Case(MERGES, f"merge {share:.2%}", "merges", partial(self._done, text))
            sums = (
                "SELECT count(*), sum(d), sum(length(c)), max(id), sum(cast(a AS decimal(20, 1))) FROM keyed"
            )
            yield Case(MERGES, f"read after {share:.2%}", "reads", partial(self._found, sums))

    def _rows(self, start: int, end: int, step: int, salt: int) -> DataFrame:
        return self.spark.range(start, end, step).selectExpr(
            "id",
            f"id * 1.5D + {salt} AS a",
            "sha2(CAST(id AS STRING), 256) AS b",
            f"concat('name-', CAST(id % 1000 + {salt} AS STRING)) AS c",
            "CAST(id % 97 AS INT) AS d",
            "timestamp_seconds(1700000000 + id) AS e",
        )

    def _files(self) -> Iterator[Case]:
        count = int(self.settings["files"])
        write = self._source("catalog_sales").repartition(count).write.format(self.format)
        yield Case(FILES, f"{count:,} files", "write", partial(write.saveAsTable, "many"))
        texts = {
            "a row": "SELECT cs_order_number IS NULL FROM many LIMIT 1",
            "a filter": "SELECT count(*), sum(cs_quantity) FROM many WHERE cs_order_number = 4242",
            "a sum": "SELECT sum(cs_quantity), sum(cs_sales_price) FROM many",
        }
        for number in range(2):
            for of, text in texts.items():
                yield Case(FILES, f"{of} {number}", of, partial(self._found, text))

    def _found(self, text: str) -> list[Row]:
        return self.spark.sql(text).collect()

    def _done(self, text: str) -> None:
        self.spark.sql(text).collect()


def digest(rows: Iterable[Iterable[Any]]) -> str:
    """A hash of rows that does not depend on their order; numbers with fractions to four digits."""
    lines = sorted("|".join(map(_plain, row)) for row in rows)
    return f"{len(lines)} rows, {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"


def _plain(value: object) -> str:
    return f"{float(value):.4g}" if isinstance(value, (float, decimal.Decimal)) else str(value)


def measured(case: Case) -> dict[str, Any]:
    """What a case cost and found, or why it failed."""
    try:
        with Watch() as watch:
            found = case.run()
    except Exception as error:  # noqa: BLE001 - it is shown, and the others are measured
        return {"failed": f"{type(error).__name__}: {error}".split("\n")[0][:300]}
    used = watch.used
    return {
        "seconds": used.seconds,
        "cpu_s": used.cpu_s,
        "peak_mb": used.peak_mb,
        "answer": "" if found is None else digest(found),
    }


def main(settings: Mapping[str, Any]) -> None:
    spark = session(settings)
    for key, value in CONFS.items():
        spark.conf.set(key, value)
    spark.range(1).collect()
    for case in Run(spark, settings).cases():
        record = {"part": case.part, "case": case.name, "of": case.of, **measured(case)}
        print(MARK + json.dumps(record), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
