"""Reading in larger steps, by dictionaries and by the predicate's columns first gives the rows of reading plainly."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.files.read import data_file
from delta_ds.kernel.files.read.data_file import DataFile
from delta_ds.kernel.files.read.file_columns import Layouts, output_schema
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import Matching, read_slice, read_slices
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    ArrayType,
    StructField,
    StructType,
)
from delta_ds.kernel.format.values import deletion_vector
from delta_ds.kernel.storage.open import open_storage
from spark_tests.behaviour.kernel.files.parquet_files import schema_of, write
from spark_tests.full_form import examples

CHAR_4 = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
TABLE = schema_of(
    p=DATE,
    a=LONG,
    s=STRING,
    f=DOUBLE,
    b=BINARY,
    c=StructField("c", STRING, metadata=CHAR_4),
    st=StructType((StructField("x", LONG), StructField("t", STRING))),
    li=ArrayType(STRING),
    missing=STRING,
)
FILE = pa.schema(
    [
        ("a", pa.int32()),  # widened since
        ("s", pa.string()),
        ("f", pa.float64()),
        ("b", pa.binary()),
        ("c", pa.string()),
        ("st", pa.struct([("x", pa.int64()), ("t", pa.string())])),
        ("li", pa.list_(pa.string())),
        ("p", pa.string()),  # what the log says counts
    ]
)
PREDICATES = [
    "a > 1", "s = 'x'", "s IS NULL", "f > 1", "f = 'NaN'", "missing IS NULL", "p = DATE'2024-01-01'",
    "a = 2 AND s <> 'yy'", "a < 0 OR c = 'x   '", "st.x = 1", "a <=> NULL", "s IN ('x', 'zzz')", "a = 77",
]  # fmt: skip
_text = st.one_of(st.none(), st.sampled_from(["", "x", "yy", "zzz", "é" * 9]))
_row = st.fixed_dictionaries(
    {
        "a": st.one_of(st.none(), st.integers(-2, 3)),
        "s": _text,
        "f": st.sampled_from([None, 0.0, -0.0, 1.5, math.inf, math.nan]),
        "b": st.one_of(st.none(), st.sampled_from([b"", b"\0", b"abc"])),
        "c": _text,
        "st": st.one_of(
            st.none(), st.fixed_dictionaries({"x": st.one_of(st.none(), st.integers(0, 2)), "t": _text})
        ),
        "li": st.one_of(st.none(), st.lists(_text, max_size=3)),
        "p": _text,
    }
)


@dataclass(frozen=True)
class Case:
    """A file, what of it counts, what is asked, and in what steps it is decoded."""

    rows: list[dict[str, Any]]
    group_rows: int
    dictionaries: bool
    pages: dict[str, int]
    gone: list[int] | None
    chosen: list[int] | None
    columns: list[str]
    predicate: str
    metadata: tuple[str, ...]
    steps: dict[str, int]


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    rows = draw(st.lists(_row, min_size=1, max_size=60))
    positions = st.one_of(st.none(), st.sets(st.integers(0, len(rows) - 1)).map(sorted))
    return Case(
        rows,
        draw(st.integers(1, 25)),
        draw(st.booleans()),
        draw(
            st.sampled_from(
                [{}, {"dictionary_pagesize_limit": 4, "data_page_size": 8, "write_batch_size": 2}]
            )
        ),
        draw(positions),
        draw(positions),
        draw(st.lists(st.sampled_from(TABLE.names), unique=True)),
        draw(st.sampled_from(PREDICATES)),
        draw(st.sampled_from([(), ("row_index",), ("file_name", "row_index")])),
        {
            "_FEW_ROWS": draw(st.sampled_from([1, 1000])),
            "_DECODED_BYTES": draw(st.sampled_from([1, 20, 1 << 20])),
            "BATCH_ROWS": draw(st.integers(1, 30)),
        },
    )


@contextmanager
def _steps(steps: dict[str, int]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in steps.items():
            stack.enter_context(mock.patch.object(data_file, name, value))
        yield


def _file(folder: Path, case: Case) -> FileSlice:
    table = pa.Table.from_pylist(case.rows, FILE)
    piece = write(
        folder, table, row_group_size=case.group_rows, use_dictionary=case.dictionaries, **case.pages
    )
    return replace(
        piece,
        partition_values=("2024-01-01",),
        deletion_vector=None if case.gone is None else deletion_vector.inline(case.gone),
        selection=None if case.chosen is None else np.array(case.chosen, np.uint64),
    )


def _plan(folder: Path, columns: list[str], case: Case) -> ReadPlan:
    fields = [field for name in columns if (field := TABLE.find(name)) is not None]
    return ReadPlan(str(folder), 0, StructType(tuple(fields)), ("p",), metadata_columns=case.metadata)


def _rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> str:
    """The rows as text, in which NaN is equal to itself; every batch is sound and of the schema."""
    found = []
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(schema, check_metadata=True)
        found += batch.to_pylist() if batch.num_columns else [{}] * batch.num_rows
    return repr(found)


def _plainly(folder: Path, piece: FileSlice, plan: ReadPlan, batch_rows: int = 7) -> Iterator[pa.RecordBatch]:
    with _steps({"_FEW_ROWS": 1 << 30}):
        yield from read_slices(open_storage(str(folder)), plan, [piece], batch_rows)


laws = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(200)
)


@given(case=_cases())
@laws
def test_how_it_is_decoded_does_not_change_the_rows(tmp_path: Path, case: Case) -> None:
    piece, plan = _file(tmp_path, case), _plan(tmp_path, case.columns, case)
    wanted = _rows(_plainly(tmp_path, piece, plan), output_schema(plan))
    with _steps(case.steps):
        found = read_slice(open_storage(str(tmp_path)), Layouts(plan), piece, None, False)
        assert _rows(found, output_schema(plan)) == wanted


@given(case=_cases())
@laws
def test_matching_rows_are_those_a_filter_leaves(tmp_path: Path, case: Case) -> None:
    piece, predicate = _file(tmp_path, case), bind(parse_predicate(case.predicate), TABLE)
    plan = replace(_plan(tmp_path, case.columns, case), predicate=predicate)
    names = output_schema(plan).names
    every = _plan(tmp_path, TABLE.names, case)
    filtered = (
        batch.filter(evaluate(predicate, batch)).select(names) for batch in _plainly(tmp_path, piece, every)
    )
    wanted = _rows(filtered, output_schema(plan))
    with _steps(case.steps):
        found = Matching(plan, TABLE).read(open_storage(str(tmp_path)), piece)
        assert _rows(found, output_schema(plan)) == wanted


def test_row_groups_without_a_match_are_not_read_beyond_the_predicate(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, 3] * 50 + [2] + [1, 3] * 50, pa.int64()), "s": ["x"] * 201})
    piece = write(tmp_path, table, row_group_size=50)
    plan = ReadPlan(str(tmp_path), 0, schema_of(a=LONG, s=STRING))
    plan = replace(plan, predicate=bind(parse_predicate("a = 2"), plan.schema))
    physical = DataFile._physical
    read: list[tuple[list[int], list[int]]] = []

    def recorded(file: DataFile, groups: list[int], leaves: list[int], *rest: Any) -> Any:
        read.append((groups, leaves))
        return physical(file, groups, leaves, *rest)

    with mock.patch.object(DataFile, "_physical", recorded):
        batches = list(Matching(plan, plan.schema).read(open_storage(str(tmp_path)), piece))
    assert [batch.to_pylist() for batch in batches] == [[{"a": 2, "s": "x"}]]
    assert [groups for groups, leaves in read if leaves == [0]] == [
        [0],
        [1],
        [2],
        [3],
    ]  # the fifth holds one value
    assert [groups for groups, leaves in read if leaves == [1]] == [[2]]


@pytest.mark.parametrize("columns", [None, [], ["i"], ["_metadata"], ["s", "_metadata"]])
@pytest.mark.parametrize(
    "predicate", ["_metadata.row_index = 2", "i = 0", "s = 'a' AND _metadata.row_index = 2"]
)
@pytest.mark.parametrize("places", [(), ("row_index",)])
def test_a_column_of_the_table_may_be_called_as_the_metadata_columns_are(
    tmp_path: Path, columns: list[str] | None, predicate: str, places: tuple[str, ...]
) -> None:
    log = DeltaLog(tmp_path)
    row = {"i": 0, "_metadata": {"row_index": 2}, "s": "a"}
    log.write(pa.Table.from_pylist([row, {"i": 1, "_metadata": {"row_index": 0}, "s": "a"}]))
    found = log.snapshot().scan(predicate, columns, metadata_columns=places).to_arrow()
    assert [column.to_pylist() for column in found.columns] == [
        *([row[name]] for name in (columns if columns is not None else row)),
        *([{"row_index": 0}] for _ in places),
    ]


def test_error_of_the_predicate_is_not_taken_for_a_damaged_file(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"a": [1, 0], "s": ["x", "y"]}))
    plan = ReadPlan(str(tmp_path), 0, schema_of(a=LONG, s=STRING))
    plan = replace(plan, predicate=bind(parse_predicate("s > 'a' AND 1 / a > 0"), plan.schema))
    with pytest.raises(PredicateError, match="(?i)zero"):
        list(Matching(plan, plan.schema).read(open_storage(str(tmp_path)), piece))


def test_texts_of_a_dictionary_come_in_pieces_that_fit(tmp_path: Path) -> None:
    long = "x" * 1000
    piece = write(tmp_path, pa.table({"s": [long, "y"] * 50}))
    plan = ReadPlan(str(tmp_path), 0, schema_of(s=STRING))
    with _steps({"_FEW_ROWS": 1, "_DECODED_BYTES": 10_000, "BATCH_ROWS": 100}):
        batches = list(read_slice(open_storage(str(tmp_path)), Layouts(plan), piece, None, False))
    assert [batch.num_rows for batch in batches] == [10] * 10
    assert pa.Table.from_batches(batches)["s"].to_pylist() == [long, "y"] * 50


def test_a_column_may_leave_its_dictionary_and_row_groups_may_grow(tmp_path: Path) -> None:
    texts = ["x", "y"] * 500 + [f"{n:05}" * 40 for n in range(1000)]
    piece = write(tmp_path, pa.table({"s": texts}), row_group_size=1000, dictionary_pagesize_limit=1000)
    plan = ReadPlan(str(tmp_path), 0, schema_of(s=STRING))
    with _steps({"_FEW_ROWS": 1, "BATCH_ROWS": 50}):
        metadata = pq.read_metadata(tmp_path / piece.path)
        groups = [metadata.row_group(0), metadata.row_group(1)]
        assert data_file.small_dictionaries(groups[0], [0]) == ["s"]
        assert data_file.rows_at_a_time(groups[:1], [0]) == 1 << 20
        assert data_file.rows_at_a_time(groups, [0]) == 50
        batches = list(read_slice(open_storage(str(tmp_path)), Layouts(plan), piece, None, False))
    assert pa.Table.from_batches(batches)["s"].to_pylist() == texts
    assert max(batch.num_rows for batch in batches) == 50


def test_dates_stay_dates(tmp_path: Path) -> None:
    piece = replace(write(tmp_path, pa.table({"a": [5]})), partition_values=("2024-01-01",))
    plan = ReadPlan(str(tmp_path), 0, schema_of(a=LONG, p=DATE), ("p",))
    plan = replace(plan, predicate=bind(parse_predicate("a = 5 AND p = DATE'2024-01-01'"), plan.schema))
    (batch,) = Matching(plan, plan.schema).read(open_storage(str(tmp_path)), piece)
    assert batch.to_pylist() == [{"a": 5, "p": dt.date(2024, 1, 1)}]
