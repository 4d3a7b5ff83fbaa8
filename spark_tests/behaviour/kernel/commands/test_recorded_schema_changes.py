"""Tables whose columns change, with and without column mapping and a feed: RESTORE, feeds, streams and clones answer as
delta-spark does, or better where that is said here.

What delta-spark answers is recorded; `spark_tests.engines.interop.record_schema_changes` records it anew.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from spark_tests.engines.conformance.corpora import SHIPPED
from spark_tests.engines.conformance.schema_change_questions import Answer, Package, questions
from spark_tests.engines.conformance.schema_changes import Case, cases, make

RECORDED = json.loads((SHIPPED / "schema_changes" / "schema_changes.json").read_text())
CASES = list(cases())


_CHANGED = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
_FEEDS_REFUSED = {
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
    _CHANGED,
}
# Both refuse the stream; which of two reasons is told first differs.
_STREAMS_REFUSED = {"DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG", _CHANGED}


def is_as_good(ours: Answer, theirs: Answer) -> bool:
    """Whether an answer is delta-spark's, or better than it.

    A feed has the schema of its end here. In delta-spark that of a table without column mapping has the latest one, so
    columns come in that are younger than the rows, and it is refused where their types do not fit; where the partition
    columns of the table have changed, it has nulls for values that are in files, or in paths. Errors of Java without a
    condition have one here, or are none.
    """
    if ours == theirs:
        return True
    if isinstance(theirs, str):
        if theirs.startswith("Py4JJavaError"):
            return isinstance(ours, str) or _is_feed(ours)
        if theirs == "DELTA_SOURCE_TABLE_IGNORE_CHANGES":
            return ours in _STREAMS_REFUSED
        return theirs in _FEEDS_REFUSED and _is_feed(ours)
    if not (isinstance(ours, dict) and isinstance(theirs, dict) and set(ours) == set(theirs)):
        return False
    if _is_feed(ours) and _is_feed(theirs):
        names = [_name(column) for column in ours["columns"]]
        mine, others = _rows(ours, names), _rows(theirs, names)
        return len(mine) == len(others) and all(map(_says_as_much, mine, others))
    return all(is_as_good(ours[key], theirs[key]) for key in ours)


def _is_feed(answer: Answer) -> bool:
    return isinstance(answer, dict) and "_change_type string" in answer.get("columns", ())


def _name(column: str) -> str:
    return column.partition(" ")[0].lower()


def _rows(feed: dict[str, Any], names: list[str]) -> list[list[Any]]:
    """Rows of a feed in some of its columns, in an order that nulls do not change."""
    there = [name for name in map(_name, feed["columns"]) if name != "_commit_timestamp"]
    places = [there.index(name) for name in names if name in there]
    rows = [json.loads(row) for row in feed["rows"]]
    found = [[_without_nulls(row[place]) for place in places] for row in rows]
    return sorted(found, key=lambda row: (row[0], row[-2:], json.dumps(row)))


def _says_as_much(ours: list[Any], theirs: list[Any]) -> bool:
    return all(a == b or b is None for a, b in zip(ours, theirs, strict=True))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_table_whose_columns_changed_answers_as_in_delta_spark(tmp_path: Path, case: Case) -> None:
    log = make(case, tmp_path / "table")

    def copy() -> Path:
        made = Path(tempfile.mkdtemp(dir=tmp_path)) / "copy"
        shutil.copytree(tmp_path / "table", made)
        return made

    package, wanted = Package(case, tmp_path / "table", copy), RECORDED[case.name]
    asked = questions(case, log.snapshot().version)
    assert list(wanted) == asked
    answers = {question: package.answer(question) for question in asked}
    differing = {q: answer for q, answer in answers.items() if not is_as_good(answer, wanted[q])}
    assert differing == {}, {question: wanted[question] for question in differing}
