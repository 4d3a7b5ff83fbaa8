"""Aggregates from the log: the same as over the rows, or none."""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DataFileError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.files.scan.aggregates import Aggregate, exact_aggregates
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
    arrow_type,
)
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.files.scan.tables import struct, to_json, write_statistics
from spark_tests.full_form import examples

UTC = dt.timezone.utc
NARROW, WIDE = DecimalType(10, 2), DecimalType(20, 2)
NESTED = struct(("x", INTEGER), ("y", STRING))
DATA = struct(
    ("i", INTEGER), ("l", LONG), ("f", FLOAT), ("d", DOUBLE), ("s", STRING), ("dt", DATE), ("ts", TIMESTAMP),
    ("ntz", TIMESTAMP_NTZ), ("dec", NARROW), ("big", WIDE), ("b", BOOLEAN), ("st", NESTED),
)  # fmt: skip
PARTITIONS = struct(("p", INTEGER), ("q", STRING), ("day", DATE))
SCHEMA = StructType((*PARTITIONS.fields, *DATA.fields))

_floats = st.sampled_from([0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan])
_times = st.sampled_from([0, 1, 1000, 1001, -1, 86_400_000_000]).map(
    lambda us: dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=us)
)
_VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-3, 3),
    LONG: st.sampled_from([-(1 << 63), -1, 0, (1 << 53) + 1, (1 << 63) - 1]),
    FLOAT: _floats,
    DOUBLE: _floats,
    STRING: st.text(st.sampled_from("ab\x7f\U0010ffff"), max_size=3),
    DATE: st.integers(-2, 2).map(lambda days: dt.date(1970, 1, 1) + dt.timedelta(days=days)),
    TIMESTAMP: _times.map(lambda t: t.replace(tzinfo=UTC)),
    TIMESTAMP_NTZ: _times,
    NARROW: st.integers(-3, 3).map(lambda n: Decimal(n).scaleb(-2)),
    WIDE: st.sampled_from(
        [Decimal("123456789012345678.01"), Decimal("123456789012345678.02"), Decimal("0.50")]
    ),
    BOOLEAN: st.booleans(),
}


def _row(fields: StructType) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({f.name: st.none() | _value(f.type) for f in fields})


def _value(data_type: DataType) -> st.SearchStrategy[Any]:
    return _row(data_type) if isinstance(data_type, StructType) else _VALUES[data_type]


@st.composite
def _statistics(draw: st.DrawFn, rows: list[dict[str, Any]], deletes: bool) -> str | None:
    """The text of a file's statistics, by a writer that keeps to the protocol in one way or another."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from([None, "{", '{"numRecords":"x"}']))
    seen = [_as_other_writers_see(row) for row in rows] if draw(st.booleans()) else rows
    tight = draw(st.sampled_from([None, False] if deletes else [None, True, True, False]))
    statistics = write_statistics(seen, DATA, prefix=draw(st.sampled_from([1, 2, 32])), tight=tight)
    # A writer that passes NaN over counts it as a value nevertheless.
    statistics["nullCount"] = write_statistics(rows, DATA)["nullCount"]
    if draw(st.integers(0, 4)) == 0:
        part = draw(st.sampled_from(["minValues", "maxValues", "nullCount"]))
        statistics[part].pop(draw(st.sampled_from(DATA.names)), None)
    return to_json(statistics)


def _as_other_writers_see(row: Mapping[str, Any]) -> dict[str, Any]:
    """As writers see it that pass NaN over and put decimals through doubles."""
    return {name: _as_double(value) for name, value in row.items()}


def _as_double(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return Decimal(repr(float(value))) if isinstance(value, Decimal) else value


@st.composite
def _tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The files of a table: `rows`, `deleted` positions, `statistics`, `values` of the partition columns."""
    found = []
    for _ in range(draw(st.integers(0, 3))):
        rows = draw(st.lists(_row(DATA), max_size=3))
        deleted = draw(st.sets(st.sampled_from(range(len(rows))))) if rows and draw(st.booleans()) else set()
        values = {f.name: draw(st.none() | _VALUES[f.type].filter(lambda v: v != "")) for f in PARTITIONS}
        text = draw(_statistics(rows, bool(deleted)))
        found.append({"rows": rows, "deleted": deleted, "statistics": text, "values": values})
    return found


def _build(path: str, tables: Sequence[Mapping[str, Any]]) -> Snapshot:
    builder = TableBuilder(path)
    builder.create(
        SCHEMA, partition_columns=PARTITIONS.names, reader_features=["deletionVectors", "timestampNtz"]
    )
    actions = []
    for number, file in enumerate(tables):
        data = pa.Table.from_pylist(file["rows"], pa.schema([(f.name, arrow_type(f.type)) for f in DATA]))
        texts = {name: None if value is None else str(value) for name, value in file["values"].items()}
        action = builder.write_file(data, path=f"{number}.parquet", partition_values=texts, stats=False)
        if file["statistics"] is not None:
            action["add"]["stats"] = file["statistics"]
        if file["deleted"]:
            action["add"]["deletionVector"] = builder.deletion_vector(file["deleted"], "i")
        actions.append(action)
    builder.commit(*actions)
    return DeltaLog(path).open_snapshot()


def _columns(schema: StructType, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for f in schema:
        if isinstance(f.type, StructType):
            yield from _columns(f.type, (*path, f.name))
        else:
            yield (*path, f.name)


REQUESTS = [Aggregate("count")] + [
    Aggregate(function, path) for path in _columns(SCHEMA) for function in ("count", "min", "max")
]


def _over_rows(rows: Sequence[Mapping[str, Any]], request: Aggregate) -> Any:
    """The aggregate as Spark defines it: NaN is the greatest, strings compare by their bytes."""
    values: list[Any] = list(rows)
    for name in request.path:
        values = [None if value is None else value[name] for value in values]
    present = [value for value in values if value is not None]
    if request.function == "count":
        return len(present)
    if not present:
        return None
    return (min if request.function == "min" else max)(present, key=_order)


def _order(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return (math.isnan(value), value) if isinstance(value, float) else value


class TestLaw:
    @settings(max_examples=examples(150))
    @given(
        tables=_tables(), requests=st.lists(st.sampled_from(REQUESTS), min_size=8, max_size=8, unique=True)
    )
    def test_an_answer_is_the_one_of_the_rows(
        self, tables: list[dict[str, Any]], requests: list[Aggregate]
    ) -> None:
        with tempfile.TemporaryDirectory() as path:
            snapshot = _build(path, tables)
            rows = Scan(snapshot).to_arrow().to_pylist()
            answers = {request: exact_aggregates(snapshot, [request]) for request in requests}
        known = {request: found[0].as_py() for request, found in answers.items() if found is not None}
        event(f"answered: {len(known) // 2 * 2} of {len(requests)}")
        # As texts, which tell the two zeros apart.
        wanted = {request: repr(_over_rows(rows, request)) for request in known}
        assert {request: repr(found) for request, found in known.items()} == wanted

    @given(rows=st.lists(st.lists(_row(DATA), min_size=1, max_size=3), min_size=1, max_size=3))
    def test_honest_statistics_of_whole_files_are_enough(self, rows: list[list[dict[str, Any]]]) -> None:
        values = {"p": 1, "q": "x", "day": dt.date(2024, 1, 1)}
        files = [
            {"rows": r, "deleted": (), "statistics": to_json(write_statistics(r, DATA)), "values": values}
            for r in rows
        ]
        certain = [
            r for r in REQUESTS
            if r.function == "count" or r.path[0] in {"i", "l", "dt", "dec", "p", "q", "day"} or r.path[1:] == ("x",)
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as path:
            assert exact_aggregates(_build(path, files), certain) is not None

    @settings(max_examples=examples(100))
    @given(
        tables=_tables(),
        column=st.sampled_from(SCHEMA.names),
        predicate=st.sampled_from([None, "i > 0", "p = 1", "d <> 0"]),
    )
    def test_a_scan_answers_for_the_rows_that_match(
        self, tables: list[dict[str, Any]], column: str, predicate: str | None
    ) -> None:
        with tempfile.TemporaryDirectory() as path:
            scan = Scan(_build(path, tables), predicate, ["s"], metadata_columns=("row_index",))
            rows = Scan(scan.snapshot, predicate).to_arrow().to_pylist()
            types = {f.name: arrow_type(f.type) for f in SCHEMA}
            assert scan.count() == len(rows)
            if column == "st":
                with pytest.raises(UnsupportedOperationError, match="no min of st"):
                    scan.extreme("min", column)
                return
            for function in ("min", "max"):
                found = scan.extreme(function, column)
                wanted = _over_rows(rows, Aggregate(function, (column,)))
                assert repr(found.as_py()).replace("-0.0", "0.0") == repr(wanted).replace("-0.0", "0.0")
                assert found.type == types[column]


# --- by hand


def one_file(folder: Path, *rows: Any, kind: DataType = INTEGER, **how: Any) -> Snapshot:
    return files_of(folder, [list(rows)], kind=kind, **how)


def files_of(
    folder: Path,
    files: Sequence[Sequence[Any]],
    *,
    kind: DataType = INTEGER,
    metadata: Any = None,
    **changes: Any,
) -> Snapshot:
    """A table with the column `c`, and honest statistics unless `changes` replace a part of them."""
    column = StructField("c", kind, True, metadata or {})
    builder = TableBuilder(folder)
    builder.create(StructType((column,)), reader_features=["deletionVectors", "timestampNtz"])
    for values in files:
        data = pa.table({"c": pa.array(values, arrow_type(kind))})
        action = builder.write_file(data, stats=False)
        own = write_statistics([{"c": v} for v in values], StructType((column,)))
        action["add"]["stats"] = to_json({k: v for k, v in {**own, **changes}.items() if v is not None})
        builder.commit(action)
    return DeltaLog(folder).open_snapshot()


def value(snapshot: Snapshot, function: Any, *path: str) -> Any:
    """The answer in a list, to tell null from no answer."""
    found = exact_aggregates(snapshot, [Aggregate(function, path)])
    return None if found is None else [found[0].as_py()]


class TestAnswers:
    def test_empty_table_has_no_rows_and_no_extremes(self, tmp_path: Path) -> None:
        snapshot = files_of(tmp_path, [])
        assert value(snapshot, "count") == [0]
        assert value(snapshot, "count", "c") == [0]
        assert value(snapshot, "min", "c") == [None]

    def test_nulls_are_not_counted_and_are_no_extremes(self, tmp_path: Path) -> None:
        snapshot = files_of(tmp_path, [[3, None], [None, None], [1]])
        requests = [Aggregate("count"), Aggregate("count", ("c",)), Aggregate("max", ("c",))]
        assert exact_aggregates(snapshot, requests) == [pa.scalar(5), pa.scalar(2), pa.scalar(3, pa.int32())]

    def test_one_uncertain_aggregate_makes_all_unanswered(self, tmp_path: Path) -> None:
        snapshot = one_file(tmp_path, "a" * 40, "b", kind=STRING)
        assert value(snapshot, "count") == [2]
        assert exact_aggregates(snapshot, [Aggregate("count"), Aggregate("min", ("c",))]) is None

    def test_file_without_row_count_leaves_counting_to_the_scan(self, tmp_path: Path) -> None:
        assert value(one_file(tmp_path, 1, numRecords=None), "count") is None

    def test_bounds_that_are_not_tight_are_no_values(self, tmp_path: Path) -> None:
        snapshot = one_file(tmp_path, 1, 2, tightBounds=False)
        assert value(snapshot, "count") == [2]
        assert value(snapshot, "min", "c") is None

    def test_file_without_bounds_is_harmless_only_if_it_holds_nulls_alone(self, tmp_path: Path) -> None:
        assert value(files_of(tmp_path / "nulls", [[None], [4]]), "min", "c") == [4]
        assert value(files_of(tmp_path / "none", [[1], [4]], minValues={}), "min", "c") is None
        assert value(files_of(tmp_path / "open", [[None]], nullCount={}), "min", "c") is None

    def test_column_that_is_not_there_is_not_answered(self, tmp_path: Path) -> None:
        snapshot = one_file(tmp_path, 1)
        assert value(snapshot, "count", "nope") is None
        assert value(snapshot, "min", "c", "nope") is None

    def test_null_counts_of_arrays_are_not_trusted(self, tmp_path: Path) -> None:
        snapshot = one_file(tmp_path, [1, None], None, kind=ArrayType(INTEGER), minValues={}, maxValues={})
        assert value(snapshot, "count", "c") is None

    def test_binary_columns_are_counted(self, tmp_path: Path) -> None:
        assert value(one_file(tmp_path, b"x", None, kind=BINARY), "count", "c") == [1]


class TestBoundsThatAreNoValues:
    def test_timestamps_are_cut_to_milliseconds(self, tmp_path: Path) -> None:
        moment = dt.datetime(2024, 1, 1, microsecond=1001, tzinfo=UTC)
        snapshot = one_file(tmp_path, moment, kind=TIMESTAMP)
        assert value(snapshot, "count", "c") == [1]
        assert value(snapshot, "max", "c") is None

    def test_strings_are_values_where_all_of_a_file_are_equal(self, tmp_path: Path) -> None:
        snapshot = files_of(tmp_path, [["m", "m"], ["n", "zz"]], kind=STRING)
        assert value(snapshot, "min", "c") == ["m"]
        assert value(snapshot, "max", "c") is None

    def test_greatest_float_may_be_a_nan_that_its_writer_passed_over(self, tmp_path: Path) -> None:
        snapshot = one_file(tmp_path, 1.5, 2.5, kind=DOUBLE)
        assert value(snapshot, "min", "c") == [1.5]
        assert value(snapshot, "max", "c") is None

    def test_zero_has_two_signs(self, tmp_path: Path) -> None:
        assert value(one_file(tmp_path, 0.0, 1.0, kind=DOUBLE), "min", "c") is None

    def test_decimals_of_more_digits_than_a_double_may_be_rounded(self, tmp_path: Path) -> None:
        assert value(one_file(tmp_path / "a", Decimal("1.25"), Decimal(2), kind=NARROW), "max", "c") == [
            Decimal(2)
        ]
        assert value(one_file(tmp_path / "b", Decimal("1.25"), Decimal(2), kind=WIDE), "max", "c") is None

    def test_text_of_a_double_that_was_a_float_has_two_meanings(self, tmp_path: Path) -> None:
        changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
        assert value(one_file(tmp_path, 3.4, 5.5, kind=DOUBLE, metadata=changes), "min", "c") is None

    def test_integers_that_were_narrower_are_read_in_the_type_of_today(self, tmp_path: Path) -> None:
        changes = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
        snapshot = files_of(tmp_path, [[7], [1 << 40]], kind=LONG, metadata=changes)
        assert (value(snapshot, "min", "c"), value(snapshot, "max", "c")) == ([7], [1 << 40])

    def test_collated_strings_have_an_order_of_their_own(self, tmp_path: Path) -> None:
        collated = {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}
        snapshot = one_file(tmp_path, "a", "a", kind=STRING, metadata=collated)
        assert value(snapshot, "count", "c") == [2]
        assert value(snapshot, "min", "c") is None


class TestDeletedRows:
    def table(self, folder: Path, files: Sequence[Sequence[Any]], deleted: Sequence[int]) -> Snapshot:
        """The rows of the first file at these positions are deleted; its bounds are those it had before."""
        builder = TableBuilder(folder)
        schema = struct(("c", INTEGER))
        builder.create(schema, reader_features=["deletionVectors"])
        adds = []
        for values in files:
            adds.append(builder.write_file(pa.table({"c": pa.array(values, pa.int32())}), stats=False))
            adds[-1]["add"]["stats"] = to_json(write_statistics([{"c": v} for v in values], schema))
        builder.commit(*adds)
        wide = json.loads(adds[0]["add"]["stats"]) | {"tightBounds": False}
        adds[0]["add"]["stats"] = json.dumps(wide)
        builder.delete_rows(adds[0], deleted)
        return DeltaLog(folder).open_snapshot()

    def test_deleted_rows_are_not_counted(self, tmp_path: Path) -> None:
        assert value(self.table(tmp_path, [[1, 2, 3], [4]], [0, 2]), "count") == [2]

    def test_values_are_counted_only_where_none_or_all_are_null(self, tmp_path: Path) -> None:
        assert value(self.table(tmp_path / "a", [[1, 2, 3], [4, None]], [0]), "count", "c") == [3]
        assert value(self.table(tmp_path / "b", [[None, None], [4]], [0]), "count", "c") == [1]
        assert value(self.table(tmp_path / "c", [[1, None], [4]], [0]), "count", "c") is None

    def test_extreme_that_may_be_deleted_is_not_answered(self, tmp_path: Path) -> None:
        snapshot = self.table(tmp_path, [[1, 2, 3], [2]], [0])
        assert value(snapshot, "min", "c") is None

    def test_extreme_of_another_file_is_answered_if_no_deleted_row_is_beyond_it(self, tmp_path: Path) -> None:
        snapshot = self.table(tmp_path, [[1, 2, 3], [0, 9]], [0])
        assert (value(snapshot, "min", "c"), value(snapshot, "max", "c")) == ([0], [9])

    def test_file_without_live_rows_has_no_extremes(self, tmp_path: Path) -> None:
        snapshot = self.table(tmp_path, [[1, 99], [5]], [0, 1])
        assert (value(snapshot, "min", "c"), value(snapshot, "max", "c")) == ([5], [5])
        assert value(snapshot, "count", "c") == [1]


class TestPartitionColumns:
    def table(
        self, folder: Path, kind: DataType, files: Sequence[tuple[str | None, int]], metadata: Any = None
    ) -> Snapshot:
        """Files of so many rows with that text as the value of the partition column `p`."""
        builder = TableBuilder(folder)
        column = StructField("p", kind, True, metadata or {})
        builder.create(StructType((column, StructField("c", INTEGER))), partition_columns=["p"])
        for number, (text, rows) in enumerate(files):
            data = pa.table({"c": pa.array([1] * rows, pa.int32())})
            builder.append(data, path=f"{number}.parquet", partition_values={"p": text})
        return DeltaLog(folder).open_snapshot()

    def test_values_of_files_with_rows_are_exact(self, tmp_path: Path) -> None:
        snapshot = self.table(tmp_path, STRING, [("b", 2), (None, 3), ("a", 0), ("c", 1)])
        assert value(snapshot, "count", "p") == [3]
        assert (value(snapshot, "min", "p"), value(snapshot, "max", "p")) == (["b"], ["c"])

    def test_timestamps_are_exact_if_they_name_their_zone(self, tmp_path: Path) -> None:
        zoned = self.table(tmp_path / "zoned", TIMESTAMP, [("2024-01-01T00:00:00.000001Z", 1)])
        assert value(zoned, "max", "p") == [dt.datetime(2024, 1, 1, microsecond=1, tzinfo=UTC)]
        local = self.table(tmp_path / "local", TIMESTAMP, [("2024-01-01 00:00:00", 1)])
        assert value(local, "max", "p") is None
        assert value(local, "count", "p") == [1]
        berlin = exact_aggregates(local, [Aggregate("max", ("p",))], timezone="Europe/Berlin")
        assert berlin is not None
        assert berlin[0].as_py() == dt.datetime(2023, 12, 31, 23, tzinfo=UTC)

    def test_padded_strings_are_counted_only(self, tmp_path: Path) -> None:
        padded = {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
        snapshot = self.table(tmp_path, STRING, [("a", 1)], padded)
        assert value(snapshot, "count", "p") == [1]
        assert value(snapshot, "min", "p") is None

    def test_booleans_are_ordered(self, tmp_path: Path) -> None:
        snapshot = self.table(tmp_path, BOOLEAN, [("true", 1), ("false", 1)])
        assert (value(snapshot, "min", "p"), value(snapshot, "max", "p")) == ([False], [True])


def test_only_asked_columns_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_ds.kernel.files.scan import aggregates

    asked: list[Any] = []
    load = aggregates.load_statistics
    monkeypatch.setattr(
        aggregates, "load_statistics", lambda f, rows, leaves: asked.append(leaves) or load(f, rows, leaves)
    )
    snapshot = one_file(tmp_path, 1)
    exact_aggregates(snapshot, [Aggregate("count")])
    exact_aggregates(snapshot, [Aggregate("min", ("c",)), Aggregate("max", ("c",))])
    assert asked == [[], [(("c",), INTEGER)]]


class TestScan:
    def test_what_the_log_tells_reads_no_file(self, tmp_path: Path) -> None:
        log = DeltaLog(str(tmp_path / "t"))
        log.write(pa.table({"x": [3, 1, 2], "s": ["b", "a", None]}))
        for file in (tmp_path / "t").glob("*.parquet"):
            file.unlink()
        scan = log.snapshot().scan()
        assert (scan.count(), scan.min("X").as_py(), scan.max("x").as_py()) == (3, 1, 3)
        with pytest.raises(DataFileError):
            log.snapshot().scan("x > 1").count()

    def test_a_count_reads_no_column_that_nothing_asks_for(self, tmp_path: Path) -> None:
        builder = TableBuilder(str(tmp_path))
        builder.create(struct(("a", INTEGER), ("b", INTEGER)))
        data = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["text, which is no integer"] * 3})
        builder.commit(builder.write_file(data, stats=False))
        scan = DeltaLog(str(tmp_path)).snapshot().scan
        assert (scan().count(), scan("a > 1").count(), scan("a > 1").max("a").as_py()) == (3, 2, 3)

    def test_a_column_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        log = DeltaLog(str(tmp_path))
        log.write(pa.table({"amount": [1]}))
        with pytest.raises(SchemaError, match="amuont"):
            log.snapshot().scan().max("amuont")

    def test_char_is_as_it_is_read(self, tmp_path: Path) -> None:
        char = StructField("c", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
        builder = TableBuilder(str(tmp_path))
        builder.create(StructType((char,)))
        builder.commit(builder.write_file(pa.table({"c": ["a"]})))
        assert DeltaLog(str(tmp_path)).snapshot().scan().min("c").as_py() == "a  "
