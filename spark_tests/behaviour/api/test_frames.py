"""Lazy rows in polars, DuckDB and pyarrow: those of the table, and what a query does not need is not read."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog, Snapshot
from delta_ds.exceptions import DataFileError, PredicateError, UnsupportedOperationError
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.files.scan.arrow_dataset import ScanDataset
from delta_ds.kernel.files.scan.scan import Scan
from spark_tests.full_form import examples

duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
pl = pytest.importorskip("polars", reason="the extra polars is not installed")

NAN = float("nan")
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "small": pa.int32(),
        "name": pa.string(),
        "part": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "price": pa.decimal128(9, 2),
        "weight": pa.float64(),
        "light": pa.float32(),
        "flag": pa.bool_(),
        "odd name": pa.int64(),
        "inner": pa.struct({"id": pa.int64()}),
    }
)


def _row(n: int) -> dict[str, Any]:
    filled = n % 7 != 3
    return {
        "id": n if filled else None,
        "small": n % 5,
        "name": f"n{n % 4}" if filled else None,
        "part": "ab"[n // 10 % 2],
        "day": date(2026, 1, 1 + n % 20),
        "at": datetime(2026, 1, 1 + n % 20, tzinfo=timezone.utc),
        "local": datetime(2026, 1, 1 + n % 20, 12),
        "price": Decimal(n) / 4,
        "weight": (NAN if n % 6 == 5 else n / 2) if filled else None,
        "light": NAN if n % 6 == 4 else n / 10,
        "flag": n % 2 == 0 if filled else None,
        "odd name": -n,
        "inner": {"id": 100 - n},
    }


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> DeltaLog:
    """Forty rows in eight files, under other names than the columns', some of them deleted by vectors."""
    log = DeltaLog(tmp_path_factory.mktemp("frames") / "t")
    for start in range(0, 40, 5):
        rows = pa.Table.from_pylist([_row(n) for n in range(start, start + 5)], SCHEMA)
        log.write(
            rows,
            options={
                "partitionBy": "part",
                "delta.columnMapping.mode": "name",
                "delta.enableDeletionVectors": "true",
            }
            if start == 0
            else None,
        )
    assert delete(log, "id % 10 = 1").rows
    assert log.snapshot().files()["deletionVector"].null_count < 8
    return log


@pytest.fixture(scope="module")
def held(log: DeltaLog) -> pa.Table:
    return log.to_arrow()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Scan]:
    """The scans that queries made."""
    found: list[Scan] = []
    narrowed = Scan.narrowed

    def noted(self: Scan, *arguments: Any) -> Scan:
        found.append(narrowed(self, *arguments))
        return found[-1]

    monkeypatch.setattr(Scan, "narrowed", noted)
    return found


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


# --- constants, the same for all three: name of a column, values of its type and near them
CONSTANTS: dict[str, list[Any]] = {
    "id": [-1, 0, 7, 12, 39, 1 << 40],
    "small": [0, 2, 4],
    "name": ["n0", "n3", "", "zz"],
    "part": ["a", "b", "c"],
    "day": [date(2026, 1, 3), date(1999, 1, 1)],
    "at": [datetime(2026, 1, 5, tzinfo=timezone.utc), datetime(2030, 1, 1, tzinfo=timezone.utc)],
    "local": [datetime(2026, 1, 5, 12)],
    "price": [Decimal("2.50"), Decimal("9.75")],
    "weight": [2.5, 0.0, NAN],
    "light": [0.5, 1.25, NAN],
    "flag": [True, False],
    "odd name": [-12, 0],
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@st.composite
def _leaves(draw: st.DrawFn) -> tuple[Any, ...]:
    name = draw(st.sampled_from(sorted(CONSTANTS)))
    values = CONSTANTS[name]
    kind = draw(st.sampled_from(["compare", "mirrored", "in", "null", "not null", "field"]))
    if kind in ("compare", "mirrored"):
        return (kind, name, draw(st.sampled_from(sorted(OPERATORS))), draw(st.sampled_from(values)))
    if kind == "in":
        return (kind, name, draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))
    return (kind, name)


FILTERS = st.recursive(
    _leaves(),
    lambda below: st.one_of(
        st.tuples(st.just("and"), below, below),
        st.tuples(st.just("or"), below, below),
        st.tuples(st.just("not"), below),
    ),
    max_leaves=4,
)


def _polars(tree: tuple[Any, ...]) -> Any:
    match tree:
        case ("and", left, right):
            return _polars(left) & _polars(right)
        case ("or", left, right):
            return _polars(left) | _polars(right)
        case ("not", below):
            return ~_polars(below)
        case ("compare", name, operator, value):
            return OPERATORS[operator](pl.col(name), pl.lit(value))
        case ("mirrored", name, operator, value):
            return OPERATORS[operator](pl.lit(value), pl.col(name))
        case ("in", name, values):
            return pl.col(name).is_in(values)
        case ("null", name):
            return pl.col(name).is_null()
        case ("not null", name):
            return pl.col(name).is_not_null()
        case _:
            return pl.col("flag")


def _arrow(tree: tuple[Any, ...]) -> pc.Expression:
    match tree:
        case ("and", left, right):
            return _arrow(left) & _arrow(right)
        case ("or", left, right):
            return _arrow(left) | _arrow(right)
        case ("not", below):
            return ~_arrow(below)
        case ("compare", name, operator, value):
            return OPERATORS[operator](pc.field(name), pa.scalar(value, SCHEMA.field(name).type))
        case ("mirrored", name, operator, value):
            # Python itself turns `value < field` round.
            functions = dict(
                zip(
                    OPERATORS,
                    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
                    strict=True,
                )
            )
            return getattr(pc, functions[operator])(
                pc.scalar(pa.scalar(value, SCHEMA.field(name).type)), pc.field(name)
            )
        case ("in", name, values):
            return pc.field(name).isin(pa.array(values, SCHEMA.field(name).type))
        case ("null", name):
            return pc.field(name).is_null()
        case ("not null", name):
            return pc.field(name).is_valid()
        case _:
            return pc.field("flag")


def _sql(tree: tuple[Any, ...]) -> str:
    match tree:
        case ("and" | "or" as word, left, right):
            return f"({_sql(left)} {word} {_sql(right)})"
        case ("not", below):
            return f"(NOT {_sql(below)})"
        case ("compare", name, operator, value):
            return f'("{name}" {operator} {_constant(value)})'
        case ("mirrored", name, operator, value):
            return f'({_constant(value)} {operator} "{name}")'
        case ("in", name, values):
            return f'("{name}" IN ({", ".join(map(_constant, values))}))'
        case ("null", name):
            return f'("{name}" IS NULL)'
        case ("not null", name):
            return f'("{name}" IS NOT NULL)'
        case _:
            return "flag"


def _constant(value: Any) -> str:
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ')}'::{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'}"
    if isinstance(value, float):
        return f"'{value}'::DOUBLE"
    return (
        f"DATE '{value}'"
        if isinstance(value, date)
        else f"'{value}'"
        if isinstance(value, str)
        else str(value)
    )


@given(tree=FILTERS)
@settings(max_examples=examples(50), deadline=None)
def test_a_filter_of_polars_finds_what_it_finds_in_memory(
    log: DeltaLog, held: pa.Table, tree: tuple[Any, ...]
) -> None:
    whole = pl.from_arrow(held)
    found = log.to_polars().filter(_polars(tree)).select("small", "odd name", "inner").collect()
    assert _sorted(found.to_dicts()) == _sorted(
        whole.filter(_polars(tree)).select("small", "odd name", "inner").to_dicts()
    )


@given(tree=FILTERS)
@settings(max_examples=examples(50), deadline=None)
def test_a_filter_of_arrow_finds_what_it_finds_in_memory(
    log: DeltaLog, held: pa.Table, tree: tuple[Any, ...]
) -> None:
    whole = ds.dataset(held)
    wanted = {"columns": ["small", "odd name"], "filter": _arrow(tree)}
    found = log.to_pyarrow_dataset()
    assert _sorted(found.to_table(**wanted).to_pylist()) == _sorted(whole.to_table(**wanted).to_pylist())
    assert found.count_rows(_arrow(tree)) == whole.count_rows(filter=_arrow(tree))


@given(tree=FILTERS)
@settings(max_examples=examples(50), deadline=None)
def test_a_query_of_duckdb_finds_what_it_finds_in_memory(
    log: DeltaLog, held: pa.Table, tree: tuple[Any, ...]
) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.register("whole", held)
        connection.execute("CREATE TABLE held AS FROM whole")
        lazy = log.to_duckdb(connection=connection)
        lazy.create_view("lazy")
        query = 'SELECT small, "odd name", "inner" FROM {} WHERE ' + _sql(tree)
        found = connection.sql(query.format("lazy")).fetchall()
        assert sorted(map(repr, found)) == sorted(map(repr, connection.sql(query.format("held")).fetchall()))


def test_a_query_reads_only_its_columns_and_the_files_that_its_filter_leaves(
    log: DeltaLog, asked: list[Scan]
) -> None:
    found = log.to_polars().filter(pl.col("id") > 32, pl.col("part") == "b").select("name").collect()
    assert found.height == 6
    assert (asked[-1].num_files, asked[-1].schema.names) == (2, ["id", "name", "part"])

    with duckdb.connect() as connection:
        rows = log.to_duckdb(connection=connection)
        assert rows.query("t", "SELECT count(name) FROM t WHERE id > 32 AND part = 'b'").fetchall() == [(6,)]
    assert (asked[-1].num_files, asked[-1].schema.names) == (2, ["id", "name", "part"])

    wanted = (pc.field("id") > 32) & (pc.field("part") == "b")
    assert log.to_pyarrow_dataset().to_table(["name"], wanted).num_rows == 6
    assert (asked[-1].num_files, asked[-1].schema.names) == (2, ["id", "name", "part"])


# A filter, and how many of the eight files it leaves. In each of them polars and Arrow say the same.
PUSHED: dict[str, tuple[tuple[Any, ...], int]] = {
    "comparison": (("compare", "id", ">=", 35), 1),
    "comparison, written the other way round": (("mirrored", "id", ">=", 4), 1),
    "decimal": (("compare", "price", ">=", Decimal("9.75")), 1),
    "double": (("compare", "weight", "<", 2.0), 1),
    "timestamp": (("compare", "at", ">", datetime(2026, 1, 19, tzinfo=timezone.utc)), 2),
    "timestamp without zone": (("compare", "local", ">", datetime(2026, 1, 19, 12)), 2),
    "date": (("compare", "day", "<", date(2026, 1, 2)), 2),
    "list": (("in", "id", [0, 39]), 2),
    "negation": (("not", ("compare", "id", "<", 35)), 1),
    "one of two": (("or", ("compare", "id", "=", 0), ("compare", "id", "=", 39)), 2),
    "what is understood, of two": (("and", ("compare", "id", "=", 0), ("not", ("compare", "weight", "<", 1.0))), 1),
    "a column with a blank": (("compare", "odd name", "<", -35), 1),
}  # fmt: skip


@pytest.mark.parametrize("case", PUSHED)
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_filters_that_are_understood_skip_files(
    log: DeltaLog, asked: list[Scan], library: str, case: str
) -> None:
    tree, files = PUSHED[case]
    if library == "polars":
        log.to_polars().filter(_polars(tree)).collect()
    else:
        log.to_pyarrow_dataset().to_table(filter=_arrow(tree))
    assert asked[-1].num_files == files


@pytest.mark.parametrize(
    "tree",
    [
        ("compare", "weight", "<>", NAN),
        ("not", ("compare", "weight", ">", 1.0)),
        ("or", ("compare", "id", "=", 0), ("not", ("compare", "light", "<", 0.5))),
    ],
)
def test_where_the_libraries_place_nan_otherwise_they_filter_themselves(
    log: DeltaLog, asked: list[Scan], tree: tuple[Any, ...]
) -> None:
    found = log.to_pyarrow_dataset().to_table(filter=_arrow(tree))
    assert asked[-1].predicate is None
    assert found.num_rows == ds.dataset(log.to_arrow()).to_table(filter=_arrow(tree)).num_rows


def test_char_columns_compare_as_the_library_compares_them(tmp_path: Path) -> None:
    """Spark pads `char(3)`: to it `'a' = 'a  '`, to polars not."""
    from delta_ds.kernel.format.schema.types import STRING, StructField, StructType
    from delta_ds.kernel.transaction.alter.create import create_table

    log = DeltaLog(tmp_path / "t")
    field = StructField("code", STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    create_table(log, StructType((field,)))
    log.write(pa.table({"code": ["a", "abc"]}))
    frame = log.to_polars()
    assert frame.filter(pl.col("code") != "a").collect()["code"].to_list() == ["a  ", "abc"]


def test_a_limit_ends_the_reading(log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    batches = Scan.to_batches

    def counted(self: Scan, *arguments: Any) -> Any:
        for batch in batches(self, *arguments):
            taken.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(Scan, "to_batches", counted)
    assert log.to_polars().head(3).collect().height == 3
    assert sum(taken) < 10


def test_predicates_and_columns_come_before_the_query(log: DeltaLog) -> None:
    assert log.to_polars("id < 10", ["id", "part"]).collect().columns == ["id", "part"]
    assert log.to_polars("id < 10", ["id"]).filter(pl.col("id") > 6).collect()["id"].to_list() == [7, 8, 9]
    assert log.to_pandas("id < 4", ["id"])["id"].to_list() == [0, 2]
    assert log.to_arrow("id < 4", ["id"]).num_rows == 2
    with duckdb.connect() as connection:
        assert log.to_duckdb("id < 4", ["id"], connection=connection).fetchall() == [(0,), (2,)]
    with pytest.raises(PredicateError, match="no column 'idd'"):
        log.to_polars("idd < 10")


def test_a_frame_of_a_snapshot_stays_at_its_version(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"id": [1]}))
    snapshot, frame = log.snapshot(), log.to_polars()
    log.write(pa.table({"id": [2]}))
    assert isinstance(snapshot, Snapshot)
    assert snapshot.to_polars().collect().height == frame.collect().height == 1
    assert log.to_polars().collect().height == 2


def test_errors_of_reading_come_out_of_polars_by_name(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"id": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.unlink()
    frame = log.to_polars()
    with pytest.raises((DataFileError, pl.exceptions.ComputeError), match=file.name):
        frame.collect()


def test_a_dataset_answers_as_those_of_pyarrow_do(log: DeltaLog) -> None:
    dataset, held = log.to_pyarrow_dataset(columns=["id", "part"]), log.to_arrow(columns=["id", "part"])
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == held.schema
    assert dataset.count_rows() == held.num_rows
    assert dataset.head(3, columns=["part"]).num_rows == 3
    assert dataset.take([2, 0]).to_pylist() == held.take([2, 0]).to_pylist()
    small = dataset.filter(pc.field("id") < 10)
    assert small.filter(pc.field("id") > 6).to_table()["id"].to_pylist() == [7, 8, 9]
    assert sum(batch.num_rows for batch in small.to_batches()) == small.count_rows()
    assert dataset.to_table({"twice": pc.field("id") * 2}, pc.field("id") == 4).to_pylist() == [{"twice": 8}]
    assert dataset.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [39]
    joined = dataset.filter(pc.field("id") < 3).join(dataset, "id", right_suffix="_too")
    assert joined.to_table().num_rows == 2
    assert dataset.partition_expression.equals(pc.scalar(True))


@pytest.mark.parametrize(
    "ask",
    [
        lambda dataset: dataset.get_fragments(),
        lambda dataset: dataset.replace_schema(pa.schema({})),
        lambda dataset: dataset.scanner(fragment_scan_options=ds.ParquetFragmentScanOptions()),
    ],
)
def test_what_is_about_files_is_refused_by_name(log: DeltaLog, ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedOperationError, match="is not to be had of a dataset of .* at version"):
        ask(log.to_pyarrow_dataset())


def test_no_method_of_pyarrows_dataset_is_left_to_the_object_that_is_not_there() -> None:
    theirs = {
        name
        for kind in ds.Dataset.__mro__
        if kind is not object
        for name in vars(kind)
        if not name.startswith("__") or name in ("__reduce__", "__repr__")
    }
    assert theirs - vars(ScanDataset).keys() == set()


@pytest.mark.parametrize(
    ("method", "package"), [("to_polars", "polars"), ("to_duckdb", "duckdb"), ("to_pandas", "pandas")]
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    log: DeltaLog, method: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{method} needs {package}.*pip install 'delta-ds\[{package}\]'"):
        getattr(log, method)()


def test_wrong_kinds_of_arguments_are_named(log: DeltaLog) -> None:
    with pytest.raises(TypeError, match="columns must be a list of texts or None, not str"):
        log.to_polars(columns="id")  # type: ignore[arg-type]


def test_values_keep_their_types(log: DeltaLog) -> None:
    frame = log.to_polars().filter(pl.col("id") == 4).collect()
    assert repr(frame.to_arrow().cast(SCHEMA).to_pylist()) == repr(log.to_arrow("id = 4").to_pylist())
    assert math.isnan(frame["light"].item())
