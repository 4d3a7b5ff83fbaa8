"""Random damage to valid commits: right rows, or an error in our own words.

Right rows are what a plain reference reader, which knows nothing of speed, makes of the damaged log. Where
JSON or types are broken it has no opinion on the rows, and the package must refuse.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.testing import TableBuilder, remove_action
from spark_tests.full_form import examples

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string())])
BOUNDED = settings(
    max_examples=examples(150),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
Rows = list[tuple[int, str | None]]


class BrokenLogError(Exception):
    """The reference reader says that this log means nothing."""


def template() -> Path:
    """A partitioned table of four versions with adds, a remove, and a transaction."""
    table = TableBuilder(tempfile.mkdtemp(prefix="fuzz-"))
    table.create(SCHEMA, partition_columns=["part"])
    first = table.write_file(pa.table({"id": [1, 2]}), path="one.parquet", partition_values={"part": "a"})
    second = table.write_file(pa.table({"id": [3]}), path="two.parquet", partition_values={"part": None})
    third = table.write_file(pa.table({"id": [4]}), path="t%20hree.parquet", partition_values={"part": "b"})
    table.commit(first, second)
    table.commit(remove_action(first), third, {"txn": {"appId": "app", "version": 1}})
    table.commit(first)
    return table.path


TEMPLATE = template()
COMMITS = [(TEMPLATE / "_delta_log" / f"{v:020d}.json").read_bytes() for v in range(4)]


def read(path: Path) -> Rows:
    rows = DeltaLog(str(path)).snapshot().scan().to_arrow()
    return sorted(zip(*(rows.column(i).to_pylist() for i in range(2)), strict=True), key=repr)


def check(version: int, content: bytes) -> None:
    """Put a damaged commit in place and compare with the reference reader."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        path = Path(scratch) / "table"
        shutil.copytree(TEMPLATE, path)
        (path / "_delta_log" / f"{version:020d}.json").write_bytes(content)
        try:
            found = read(path)
        except DeltaError:
            return
        try:
            wanted = reference_rows(path)
        except BrokenLogError as error:
            raise AssertionError(f"read {found} from a log that is broken: {error}") from error
        assert found == wanted


@st.composite
def damaged_bytes(draw: st.DrawFn) -> tuple[int, bytes]:
    """A commit with some bytes overwritten, put in, taken out or doubled."""
    version = draw(st.integers(0, len(COMMITS) - 1))
    content = bytearray(COMMITS[version])
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 12))
        piece = draw(st.one_of(st.binary(max_size=4), st.sampled_from(PIECES)))
        content[start : start + length] = piece
    return version, bytes(content)


PIECES = [
    b"\n",
    b"\r\n",
    b'"',
    b"{",
    b"}",
    b",",
    b":",
    b"null",
    b"1e400",
    b"NaN",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"",
]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@st.composite
def retyped_actions(draw: st.DrawFn) -> tuple[int, bytes]:
    """A commit in which a field lost its value, or got one of another type or text."""
    version = draw(st.integers(0, len(COMMITS) - 1))
    actions = [json.loads(line) for line in COMMITS[version].splitlines()]
    for _ in range(draw(st.integers(1, 2))):
        node: Any = draw(st.sampled_from(actions))
        key = draw(st.sampled_from(sorted(node)))
        while isinstance(node[key], dict) and node[key] and draw(st.integers(0, 4)):
            node = node[key]
            key = draw(st.sampled_from(sorted(node)))
        if draw(st.booleans()):
            node[key] = draw(VALUES)
        else:
            del node[key]
            if not any(actions):
                break
        actions = [action for action in actions if action]
    return version, b"".join(json.dumps(action).encode() + b"\n" for action in actions)


@BOUNDED
@given(damaged_bytes())
@example((1, COMMITS[1][:-30]))
@example((2, COMMITS[2].replace(b'"path"', b'"\\u0070ath"')))
def test_damaged_bytes_of_a_commit_give_right_rows_or_an_error(damaged: tuple[int, bytes]) -> None:
    check(*damaged)


@BOUNDED
@given(retyped_actions())
def test_retyped_fields_of_a_commit_give_right_rows_or_an_error(damaged: tuple[int, bytes]) -> None:
    check(*damaged)


@settings(BOUNDED, max_examples=examples(40))
@given(st.integers(0, 3), st.data())
def test_commit_cut_anywhere_gives_right_rows_or_an_error(version: int, data: st.DataObject) -> None:
    check(version, COMMITS[version][: data.draw(st.integers(0, len(COMMITS[version])))])


def test_untouched_commits_are_read_as_the_reference_reads_them() -> None:
    assert read(TEMPLATE) == reference_rows(TEMPLATE) == [(1, "a"), (2, "a"), (3, None), (4, "b")]


def reference_rows(path: Path) -> Rows:
    """The rows of a table, by the plainest reading of the protocol."""
    live: dict[str, dict[str, Any]] = {}
    seen: dict[str, Any] = {}
    for commit in sorted((path / "_delta_log").glob("*.json")):
        for line in commit.read_bytes().splitlines():
            if line.strip():
                _apply(_parse(line), live, seen)
    _demand(
        isinstance(seen.get("protocol"), dict) and isinstance(seen.get("metaData"), dict),
        "no protocol, metaData",
    )
    _demand(_integer(seen["protocol"].get("minReaderVersion")) in (1, 2), "another protocol")
    columns = seen["metaData"].get("partitionColumns")
    _demand(columns == ["part"] or not columns, "other partition columns")
    return _rows_of(path, live.values(), bool(columns))


def _parse(line: bytes) -> dict[str, Any]:
    try:
        action = json.loads(line.decode("utf-8", errors="replace"), strict=False)
    except ValueError as error:
        raise BrokenLogError(str(error)) from error
    _demand(isinstance(action, dict) or action is None, "an action that is no object")
    return action or {}


def _apply(action: dict[str, Any], live: dict[str, dict[str, Any]], seen: dict[str, Any]) -> None:
    for kind in ("protocol", "metaData"):
        if action.get(kind) is not None:
            seen[kind] = action[kind]
    for kind in ("add", "remove"):
        body = action.get(kind)
        if body is None:
            continue
        _demand(isinstance(body, dict) and isinstance(body.get("path"), str), f"{kind} without a path")
        _demand(body.get("deletionVector") is None, "a deletion vector")
        live.pop(body["path"], None)
        if kind == "add":
            live[body["path"]] = body


def _rows_of(path: Path, adds: Any, partitioned: bool) -> Rows:
    from urllib.parse import unquote

    rows: Rows = []
    for add in adds:
        values = add.get("partitionValues") or {}
        _demand(isinstance(values, dict), "partitionValues that are no object")
        value = values.get("part") if partitioned else None
        text = value if value is None or isinstance(value, str) else json.dumps(value)
        file = path / unquote(add["path"])
        _demand(file.is_file(), f"a missing file {file.name!r}")
        with pq.ParquetFile(file) as parquet:
            rows += [(row, text or None) for row in parquet.read().column("id").to_pylist()]
    return sorted(rows, key=repr)


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _demand(condition: bool, text: str) -> None:
    if not condition:
        raise BrokenLogError(text)
