"""Lazy frames whose data pages polars decodes have the rows of the table; what polars cannot read is read here."""

from __future__ import annotations

import datetime as dt
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.testing import TableBuilder
from spark_tests.full_form import examples

pl = pytest.importorskip("polars", reason="the extra polars is not installed")
if int(pl.__version__.partition(".")[0]) < 2:
    pytest.skip("before 2.0 polars decodes nothing", allow_module_level=True)

MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)


@pytest.fixture
def decoded_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that this package decoded."""
    found: list[str] = []
    batches_of = Scan.batches_of

    def noted(self: Scan, slices: Any) -> Iterator[pa.RecordBatch]:
        found.extend(piece.path for piece in slices)
        return batches_of(self, slices)

    monkeypatch.setattr(Scan, "batches_of", noted)
    return found


def _table(path: Path, schema: pa.Schema, *files: pa.Table, **create: Any) -> DeltaLog:
    builder = TableBuilder(path)
    builder.create(schema, **create)
    for number, rows in enumerate(files):
        builder.append(rows, path=f"{number}.parquet", stats=False)
    return DeltaLog(path)


def _is_as_in_memory(log: DeltaLog, **ask: Any) -> None:
    found, held = log.to_polars(**ask).collect(), pl.from_arrow(log.to_arrow(**ask))
    assert found.schema == held.schema
    assert found.equals(held)


NESTED = pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, None]),
    "byte": (pa.int8(), [-1, None]),
    "long": (pa.int64(), [1 << 60, None]),
    "float": (pa.float32(), [float("nan"), None]),
    "double": (pa.float64(), [-0.0, None]),
    "decimal": (pa.decimal128(38, 5), [Decimal("-1.5"), None]),
    "money": (pa.decimal128(9, 2), [Decimal("1.25"), None]),
    "text": (pa.string(), ["ü\0", None]),
    "bytes": (pa.binary(), [b"\xff", None]),
    "day": (pa.date32(), [dt.date(1200, 1, 1), None]),
    "moment": (pa.timestamp("us", "UTC"), [dt.datetime(1500, 1, 1, tzinfo=dt.timezone.utc), None]),
    "local": (pa.timestamp("us"), [dt.datetime(9999, 1, 1), None]),
    "list": (pa.list_(pa.int32()), [[1, None], [], None]),
    "struct": (NESTED, [{"a": 1, "b": ["u", None]}, {"a": None, "b": None}, None]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_polars_decodes_every_type_as_this_package_does(
    tmp_path: Path, decoded_here: list[str], kind: str
) -> None:
    type_, values = VALUES[kind]
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"x": pa.array(values, type_)}))
    _is_as_in_memory(log)
    assert decoded_here == []


# Files of which polars needs to know more than they say: what they hold, and the column of the table.
ALIKE = {
    "a narrower whole number": (pa.array([-1, None], pa.int32()), pa.int64()),
    "a narrower fraction": (pa.array([0.1, None], pa.float32()), pa.float64()),
    "large texts": (pa.array(["a", None], pa.large_string()), pa.string()),
    "views of texts": (pa.array(["a", None], pa.string_view()), pa.string()),
}


@pytest.mark.parametrize("case", ALIKE)
def test_columns_of_other_types_become_those_of_the_table(
    tmp_path: Path, decoded_here: list[str], case: str
) -> None:
    stored, type_ = ALIKE[case]
    log = _table(tmp_path / "t", pa.schema({"x": type_}), pa.table({"x": stored}))
    _is_as_in_memory(log)
    assert log.to_polars().filter(pl.col("x") == stored[0].as_py()).collect().height == 1
    assert decoded_here == []


def test_a_column_that_older_files_lack_is_null_or_its_default(
    tmp_path: Path, decoded_here: list[str]
) -> None:
    old, new = pa.table({"id": [1, 2]}), pa.table({"new": ["b"], "later": [5], "id": [3]})
    fields = [
        pa.field("id", pa.int64()),
        pa.field("new", pa.string()),
        pa.field("later", pa.int64(), metadata={"EXISTS_DEFAULT": "7"}),
    ]
    log = _table(tmp_path / "t", pa.schema(fields), old, new)
    _is_as_in_memory(log)
    _is_as_in_memory(log, columns=["new"])
    assert log.to_polars().filter(pl.col("new").is_null()).select("id").collect()["id"].to_list() == [1, 2]
    # Without a column of its own a file cannot tell polars how many rows it has.
    assert set(decoded_here) <= {"0.parquet"}


def _footer(rows: pa.Table, **texts: str) -> pa.Table:
    return rows.replace_schema_metadata({f"org.apache.spark.{name}": text for name, text in texts.items()})


LEFT_TO_THIS_PACKAGE = {
    "another unit of time": pa.table({"x": pa.array([MOMENT], pa.timestamp("ms", "UTC"))}),
    "the calendar before 1582": _footer(
        pa.table({"x": pa.array([dt.datetime(1500, 1, 1)], pa.timestamp("us", "UTC"))}),
        version="3.5.0",
        legacyDateTime="",
    ),
    "another case of the name": None,
}


@pytest.mark.parametrize("case", LEFT_TO_THIS_PACKAGE)
def test_only_the_files_that_need_it_are_decoded_here(
    tmp_path: Path, decoded_here: list[str], case: str
) -> None:
    rows = LEFT_TO_THIS_PACKAGE[case]
    plain = pa.table({"x": pa.array([MOMENT], pa.timestamp("us", "UTC"))})
    odd = plain.rename_columns(["X"]) if rows is None else rows
    log = _table(tmp_path / "t", plain.schema, plain, odd, plain)
    _is_as_in_memory(log)
    assert decoded_here == ([] if rows is None else ["1.parquet"])


def test_timestamps_of_96_bits_keep_their_years(tmp_path: Path, decoded_here: list[str]) -> None:
    rows = pa.table({"x": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us"))})
    log = _table(tmp_path / "t", rows.schema, rows)
    pq.write_table(rows, tmp_path / "t" / "0.parquet", use_deprecated_int96_timestamps=True)
    _is_as_in_memory(log)
    assert decoded_here == ["0.parquet"]


def test_maps_and_char_columns_are_decoded_here(tmp_path: Path, decoded_here: list[str]) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "id": [1]}))
    _is_as_in_memory(log)
    assert len(decoded_here) == 1
    _is_as_in_memory(log, columns=["id"])
    assert len(decoded_here) == 1


def test_a_predicate_of_spark_sql_is_evaluated_here(tmp_path: Path, decoded_here: list[str]) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"id": [1, 2, 3]}))
    assert log.to_polars("id % 2 = 1").filter(pl.col("id") > 1).collect()["id"].to_list() == [3]
    assert len(decoded_here) == 1


def test_odd_names_of_files_are_no_patterns(tmp_path: Path, decoded_here: list[str]) -> None:
    builder = TableBuilder(tmp_path / "a=1 [x]*")
    builder.create(pa.schema({"id": pa.int64(), "a": pa.int64()}))
    for number, name in enumerate(["[0-9].parquet", "*.parquet", "b=2/ö %20.parquet"]):
        builder.append(pa.table({"id": [number], "a": [9]}), path=name)
    _is_as_in_memory(DeltaLog(tmp_path / "a=1 [x]*"))
    assert decoded_here == []


PARTS: list[Any] = [None, "a", "b c", "ü"]


@given(
    files=st.lists(
        st.tuples(st.sampled_from(PARTS), st.integers(1, 30), st.sets(st.integers(0, 29))),
        min_size=1,
        max_size=12,
    ),
    low=st.integers(-5, 40),
    limit=st.one_of(st.none(), st.integers(0, 20)),
    columns=st.permutations(["id", "part", "text"]).flatmap(
        lambda names: st.integers(1, 3).map(lambda count: names[:count])
    ),
)
@settings(max_examples=examples(30), deadline=None)
def test_deleted_rows_partitions_filters_and_limits_are_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[str | None, int, set[int]]],
    low: int,
    limit: int | None,
    columns: list[str],
) -> None:
    path = tmp_path_factory.mktemp("law") / "t"
    builder = TableBuilder(path)
    schema = pa.schema({"id": pa.int64(), "text": pa.string(), "part": pa.string()})
    builder.create(schema, partition_columns=["part"], reader_features=["deletionVectors"])
    for part, rows, gone in files:
        ids = list(range(rows))
        add = builder.write_file(
            pa.table({"id": ids, "text": [None if n % 5 == 0 else f"t{n}" for n in ids]}),
            partition_values={"part": part},
            path=f"{builder.version}.parquet",
            row_group_size=7,
        )
        builder.commit(add)
        if gone := {n for n in gone if n < rows}:
            builder.delete_rows(add, gone)
    log = DeltaLog(path)
    held = pl.from_arrow(log.to_arrow())
    wanted = (pl.col("id") > low) | (pl.col("part") == "a")
    for filter_ in (pl.lit(True), wanted):
        ours, theirs = log.to_polars().filter(filter_).select(columns), held.filter(filter_).select(columns)
        if limit is not None:
            ours, theirs = ours.head(limit), theirs.head(limit)
        assert ours.collect().equals(theirs)


def _damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xee" * 196
    path.write_bytes(content)


def test_a_damaged_page_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(5000)})
    log = _table(tmp_path / "t", rows.schema, rows, rows)
    _damaged(tmp_path / "t" / "1.parquet")
    with pytest.raises((DataFileError, pl.exceptions.ComputeError), match=r"1\.parquet"):
        log.to_polars().collect()


def test_what_polars_cannot_read_is_read_here_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Polars fails after some rows: the others follow, each once."""
    rows = pa.table({"id": np.arange(300)})
    log = _table(tmp_path / "t", rows.schema, rows, rows)
    collect_batches = pl.LazyFrame.collect_batches

    def failing(self: Any, **options: Any) -> Iterator[Any]:
        whole = pl.concat(list(collect_batches(self, **options)))
        yield whole.head(311)
        raise pl.exceptions.ComputeError("parquet: an encoding of tomorrow")

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", failing)
    with caplog.at_level(logging.WARNING):
        found = log.to_polars().filter(pl.col("id") % 2 == 0).collect()
    assert found["id"].to_list() == 2 * list(range(0, 300, 2))
    assert [record.event for record in caplog.records] == ["parquet_read_again"]  # type: ignore[attr-defined]


def test_rows_that_polars_loses_are_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = pa.table({"id": np.arange(300)})
    log = _table(tmp_path / "t", rows.schema, rows, rows)
    collect_batches = pl.LazyFrame.collect_batches

    def losing(self: Any, **options: Any) -> Iterator[Any]:
        yield pl.concat(list(collect_batches(self, **options))).head(311)

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", losing)
    with caplog.at_level(logging.WARNING):
        assert log.to_polars().collect()["id"].to_list() == 2 * list(range(300))
    assert [record.event for record in caplog.records] == ["parquet_read_again"]  # type: ignore[attr-defined]


def _joined(frame: Any) -> Any:
    return frame.join(frame.group_by("key").agg(pl.len()), on="key").select(pl.col("len").sum())


WAYS: dict[str, Callable[[Any], int]] = {
    "in memory": lambda frame: _joined(frame).collect(engine="in-memory").item(),
    "streaming": lambda frame: _joined(frame).collect(engine="streaming").item(),
    "together": lambda frame: sum(each.item() for each in pl.collect_all([_joined(frame)] * 4)) // 4,
}


@pytest.mark.parametrize("way", WAYS)
def test_queries_inside_queries_end(tmp_path: Path, way: str) -> None:
    rows = pa.table({"key": np.arange(20_000) % 100, "text": [str(n) for n in range(20_000)]})
    log = _table(tmp_path / "t", rows.schema, *[rows] * 10)
    assert WAYS[way](log.to_polars()) == 100 * 2000 * 2000


def test_a_pool_of_one_thread_is_enough(tmp_path: Path) -> None:
    rows = pa.table({"key": np.arange(20_000) % 100})
    _table(tmp_path / "t", rows.schema, *[rows] * 10)
    program = (
        "import sys, polars as pl; from delta_ds import DeltaLog\n"
        "frame = DeltaLog(sys.argv[1]).to_polars()\n"
        "for engine in ('in-memory', 'streaming'):\n"
        "    found = frame.join(frame.unique(), on='key').select(pl.len()).collect(engine=engine)\n"
        "    print(found.item())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "t")],
        env={"POLARS_MAX_THREADS": "1", "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ended.stdout.split() == ["200000", "200000"]


def test_a_frame_is_written_to_a_file_without_being_held(tmp_path: Path, decoded_here: list[str]) -> None:
    rows = pa.table({"id": np.arange(1000)})
    log = _table(tmp_path / "t", rows.schema, *[rows] * 20)
    log.to_polars().filter(pl.col("id") < 10).sink_parquet(tmp_path / "out.parquet")
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 200
    assert decoded_here == []
