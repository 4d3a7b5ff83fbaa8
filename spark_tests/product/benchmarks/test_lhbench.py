"""The part `lhbench`: every case does its work, and sides that find other rows are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.lhbench_parts import rows_of
from benchmarks.lhbench_worker import PARTS, Run, measured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_DAY = 2451545
_TABLES: dict[str, dict[str, list[int]]] = {
    "store_sales": {
        "ss_item_sk": list(range(60)),
        "ss_sold_date_sk": [_FIRST_DAY + 10 * (n % 30) for n in range(60)],
        "ss_quantity": list(range(60)),
    },
    "store_returns": {
        "sr_item_sk": list(range(200)),
        "sr_ticket_number": list(range(200)),
        "sr_return_quantity": [1] * 200,
    },
    "catalog_sales": {
        "cs_order_number": list(range(4200, 4300)),
        "cs_quantity": list(range(100)),
        "cs_sales_price": list(range(100)),
    },
}


@pytest.mark.long
def test_every_case_does_its_work_and_finds_what_parquet_tables_hold(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    for name, columns in _TABLES.items():
        (data / "source" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), data / "source" / name / "0.parquet")
    (data / "queries").mkdir()
    (data / "queries" / "01.sql").write_text("SELECT sum(ss_quantity) FROM store_sales")
    found: dict[str, list[dict[str, Any]]] = {}
    for side in ("pydelta", "parquet"):
        settings = {
            "format": side,
            "data": str(data),
            "folder": str(tmp_path / side),
            "rows": 4000,
            "files": 4,
        }
        try:
            cases = Run(spark, settings).cases()
            found[side] = [{"part": c.part, "of": c.of, "case": c.name, **measured(c)} for c in cases]
        finally:
            spark.sql("USE default")
            spark.sql("DROP DATABASE lhbench CASCADE")
    assert not [record for records in found.values() for record in records if "failed" in record]
    assert {record["part"] for record in found["pydelta"]} == set(PARTS)
    assert not any(row[-1] for row in rows_of(found))


def test_other_rows_and_failures_are_told_and_do_not_count() -> None:
    def case(seconds: float, **more: str) -> dict[str, Any]:
        return {
            "part": "queries",
            "of": "queries",
            "case": "01",
            "seconds": seconds,
            "cpu_s": seconds,
            **more,
        }

    found = {"pydelta": [case(1.0, answer="a")], "delta": [case(2.0, answer="b")]}
    ours, theirs = rows_of(found)
    assert ours == ["queries", "1 queries", "pydelta", "1.00 s", "1.00 s", "1.0 s", "0.50", "0.50", "", "01"]
    assert theirs[-1] == "01"
    failed = {
        "pydelta": [{"part": "queries", "of": "queries", "case": "01", "failed": "no"}, case(1.0, answer="a")]
    }
    ((*_, told, differs),) = rows_of(failed)
    assert (told, differs) == ("01", "")
