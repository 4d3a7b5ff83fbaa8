"""The answers of a table's page, held against the kernel's own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.cli.ui import files as rows_module
from delta_ds.kernel.commands.health import health
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.cli.ui.serving import Page, served

SALES = Path(__file__).resolve().parents[4] / "examples" / "data" / "sales"
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "sales"
    shutil.copytree(SALES, path)
    return path


@pytest.fixture(scope="module")
def sales(path: Path) -> Iterator[Page]:
    with served(path) as found:
        yield found


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(file): (file.stat().st_mtime_ns, file.stat().st_size)
        for file in folder.rglob("*")
        if file.is_file()
    }


# --- versions


def test_the_table_is_what_describe_detail_tells(sales: Page, path: Path) -> None:
    snapshot = DeltaLog(path).snapshot()
    found = sales.ask("table")
    assert (found["version"], found["newest"]) == (7, 7)
    assert found["id"] == snapshot.metadata.id and found["partitionColumns"] == ["country"]
    assert found["rows"] == snapshot.scan().count() and found["files"] == snapshot.detail()["numFiles"]
    assert [column["name"] for column in found["columns"]] == snapshot.schema.names
    assert {each["name"]: each["value"] for each in found["properties"]} == snapshot.properties
    on = {each["name"]: each["on"] for each in found["features"]}
    assert on["deletionVectors"] is True and on["appendOnly"] is False


def test_a_version_is_named_by_number_or_time(sales: Page, path: Path) -> None:
    assert sales.ask("table", at="3")["version"] == 3
    when = DeltaLog(path).history()[2]["timestamp"]
    assert sales.ask("table", at=when.isoformat())["version"] == 5
    error = sales.ask("table", at="99", status=404)
    assert error["condition"] == "DELTA_VERSION_NOT_FOUND" and "[0, 7]" in error["message"]
    assert sales.ask("table", at="1999-01-01", status=404)["error"] == "TimestampOutOfRangeError"
    assert sales.ask("table", at="yesterday, perhaps", status=400)["condition"]


def test_a_page_can_begin_with_an_earlier_version(path: Path) -> None:
    with served(path, start=2) as page:
        found = page.ask("table")
        assert (found["version"], found["newest"]) == (2, 7)
        assert page.ask("table", at="7")["version"] == 7


def test_partitions_of_days_beyond_the_calendar_of_python_are_told(tmp_path: Path) -> None:
    days = pa.array([2**30, -(10**6), None], pa.date32())
    DeltaLog(tmp_path).write(pa.table({"id": [1, 2, 3], "day": days}), options={"partitionBy": "day"})
    with served(tmp_path) as page:
        (day,) = (each for each in page.ask("columns", version=0)["columns"] if each["name"] == "day")
        ranges = page.ask("ranges", version=0, column="day")
        for told in (day, ranges):
            assert (told["low"], told["high"]) == ("-0768-02-04", "+2941775-04-07")


def test_a_new_version_is_seen_by_the_next_request(tmp_path: Path) -> None:
    DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    with served(tmp_path) as page:
        assert page.ask("table")["rows"] == 1
        DeltaLog(tmp_path).write(pa.table({"id": [2]}))
        assert (page.ask("table")["version"], page.ask("table")["rows"]) == (1, 2)


def test_another_table_in_the_place_of_this_one_is_not_taken_for_it(tmp_path: Path) -> None:
    DeltaLog(tmp_path / "t").write(pa.table({"id": [1]}))
    with served(tmp_path / "t") as page:
        assert page.ask("table")["rows"] == 1
        shutil.rmtree(tmp_path / "t")
        DeltaLog(tmp_path / "t").write(pa.table({"other": [1, 2]}))
        found = page.ask("table")
        assert (found["rows"], found["columns"][0]["name"]) == (2, "other")
        assert page.ask("rows", version=0)["columns"][0]["name"] == "other"


@pytest.mark.parametrize("at", ["9" * 5000, "\u0663", "9" * 25])
def test_odd_numbers_name_no_version(sales: Page, at: str) -> None:
    assert sales.ask("table", at=at, status=400)["condition"]


def test_before_the_first_version_there_is_none(sales: Page) -> None:
    assert sales.ask("timeline", before=0) == {"versions": [], "older": False}
    assert [row["version"] for row in sales.ask("timeline", before=1)["versions"]] == [0]


def test_the_timeline_is_that_of_the_kernel_page_by_page(sales: Page, path: Path) -> None:
    rows: list[dict[str, Any]] = []
    before: dict[str, int] = {}
    while True:
        found = sales.ask("timeline", limit=3, **before)
        rows += found["versions"]
        if not found["older"]:
            break
        before = {"before": rows[-1]["version"]}
    assert [row["version"] for row in rows] == list(range(7, -1, -1))
    history = DeltaLog(path).history()
    assert [row["operation"] for row in rows] == [entry["operation"] for entry in history]
    counts = ("files", "bytes", "added_files", "added_bytes", "removed_files", "removed_bytes")
    kernel = DeltaLog(path).timeline().versions.select(["version", *counts]).to_pylist()
    assert [{name: row[name] for name in ("version", *counts)} for row in rows[::-1]] == kernel


def test_rows_of_a_version_are_counted_by_its_metrics(sales: Page) -> None:
    rows = {row["version"]: row["rows"] for row in sales.ask("timeline")["versions"]}
    assert rows[7] == {"inserted": 60}
    assert rows[6] == {"inserted": 10, "updated": 10, "deleted": 0}
    assert rows[5] == {"deleted": 9}
    assert rows[4] == {"updated": 17}
    assert rows[0] == {}


def test_the_first_versions_may_be_cleaned_up(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    for number in range(6):
        table.append(pa.table({"id": [number]}))
    table.checkpoint("v1", version=3)
    for version in range(3):
        (table.log / f"{version:020}.json").unlink()
    with served(tmp_path) as page:
        found = page.ask("timeline")
        assert [row["version"] for row in found["versions"]] == [6, 5, 4, 3] and not found["older"]
        assert found["versions"][-1]["added_files"] is None and found["versions"][-1]["files"] == 3
        assert page.ask("commit", version=1, status=404)["condition"] == "DELTA_VERSION_NOT_FOUND"


def test_a_commit_shows_its_actions_some_files_at_a_time(sales: Page) -> None:
    found = sales.ask("commit", version=4, limit=5)
    assert found["counts"] == {"add": 6, "remove": 3, "cdc": 3}
    assert [action["kind"] for action in found["actions"]] == ["commitInfo"]
    files = found["files"] + [
        file for offset in (5, 10) for file in sales.ask("commit", version=4, offset=offset, limit=5)["files"]
    ]
    assert sorted(file["kind"] for file in files) == ["add"] * 6 + ["cdc"] * 3 + ["remove"] * 3
    assert len({(file["kind"], file["path"]) for file in files}) == 12
    assert sum(file["deleted"] or 0 for file in files if file["kind"] == "add") == 17
    kinds = [action["kind"] for action in sales.ask("commit", version=0)["actions"]]
    assert set(kinds) == {"commitInfo", "protocol", "metaData"}


def test_numbers_in_actions_are_those_of_the_log(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    table.commit({"txn": {"appId": "a", "version": 9007199254740993}})
    with served(tmp_path) as page:
        texts = [action["text"] for action in page.ask("commit", version=1)["actions"]]
    assert any("9007199254740993" in text for text in texts)


def test_a_damaged_commit_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    with served(tmp_path) as page:
        page.ask("table")
        (table.log / f"{1:020}.json").write_bytes(b'{"add": ')
        error = page.ask("commit", version=1, status=500)
        assert (
            error["condition"] == "DELTA_CORRUPT_LOG_FILE" and "00000000000000000001.json" in error["message"]
        )


# --- files


def test_partitions_add_up_to_the_table(sales: Page) -> None:
    found = sales.ask("partitions", version=7, sort="rows", descending="true")
    assert [row["values"]["country"] for row in found["partitions"]] == ["DE", "PL", "FR"]
    table = sales.ask("table")
    for name in ("files", "bytes", "rows", "deleted"):
        assert sum(row[name] for row in found["partitions"]) == table[name]
    second = sales.ask("partitions", version=7, offset=1, limit=1)
    assert second["total"] == 3 and [row["values"]["country"] for row in second["partitions"]] == ["FR"]


def test_files_are_sorted_and_paged_on_the_server(sales: Page, path: Path) -> None:
    live = DeltaLog(path).open_snapshot().live_files().table
    found = sales.ask("files", version=7, sort="bytes", descending="true", limit=5)
    assert found["total"] == live.num_rows
    assert [row["size"] for row in found["files"]] == sorted(live["size"].to_pylist(), reverse=True)[:5]
    paths = [
        row["path"]
        for offset in range(0, 18, 5)
        for row in sales.ask("files", version=7, limit=5, offset=offset)["files"]
    ]
    assert paths == sorted(live["path"].to_pylist())
    (group,) = [
        row["partition"]
        for row in sales.ask("partitions", version=7)["partitions"]
        if row["values"]["country"] == "FR"
    ]
    of_one = sales.ask("files", version=7, partition=group)["files"]
    assert len(of_one) == 6 and {row["values"]["country"] for row in of_one} == {"FR"}


WHERE = "country = 'DE' AND sold_on >= DATE'2026-04-01'"


def test_a_filter_is_explained_as_the_kernel_explains_it(sales: Page, path: Path) -> None:
    explained = DeltaLog(path).snapshot().scan(WHERE).explain()
    found = sales.ask("filter", version=7, where=WHERE)
    assert (found["read"]["files"], found["all"]["files"]) == (explained.num_read, explained.num_files)
    assert found["rules"] == explained.steps.to_pylist()
    assert found["strip"] == {
        "filesPerCell": 1,
        "cells": [float(kept) for kept in explained["kept"].to_pylist()],
    }
    by_path = {row["path"]: (row["kept"], row["rule"]) for row in explained.to_pylist()}
    rows = sales.ask("files", version=7, where=WHERE)["files"]
    assert {row["path"]: (row["kept"], row["rule"]) for row in rows} == by_path
    assert sales.ask("files", version=7, where=WHERE, kept="yes")["total"] == explained.num_read
    assert (
        sales.ask("files", version=7, where=WHERE, kept="no")["total"]
        == explained.num_files - explained.num_read
    )


@pytest.mark.parametrize(
    ("where", "condition"),
    [("nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"), ("order_id >", None), (f"{EVIL} = 1", None)],
)
def test_a_wrong_predicate_is_an_error_with_its_condition(
    sales: Page, where: str, condition: str | None
) -> None:
    for name in ("filter", "files", "rows"):
        error = sales.ask(name, version=7, where=where, status=400)
        assert error["condition"] == condition if condition else error["condition"]


def test_times_in_predicates_are_of_the_zone_of_the_page(tmp_path: Path) -> None:
    moment = pa.scalar(1_700_000_000_000_000, pa.timestamp("us", "UTC"))  # 2023-11-14 22:13:20 UTC
    DeltaLog(tmp_path).write(pa.table({"t": pa.array([moment])}))
    where = "t < '2023-11-14 23:00:00'"
    for zone, files in (("UTC", 1), ("Asia/Tokyo", 0)):
        with served(tmp_path, zone=zone) as page:
            assert page.ask("table")["zone"] == zone
            assert page.ask("filter", version=0, where=where)["read"]["files"] == files


# --- columns and rows


def test_columns_have_the_ranges_of_the_kernel(sales: Page, path: Path) -> None:
    found = sales.ask("columns", version=7)
    assert found["total"] == 6 and found["numFiles"] == 18
    by_name = {row["name"]: row for row in found["columns"]}
    layout = DeltaLog(path).snapshot().column_layout("sold_on")
    assert (by_name["sold_on"]["low"], by_name["sold_on"]["high"]) == ("2026-01-01", "2026-04-28")
    assert by_name["sold_on"]["read"] == layout.files_read()
    assert by_name["country"]["low"] == "DE" and by_name["amount"]["low"] == "2.50"
    page = sales.ask("columns", version=7, offset=4, limit=10)["columns"]
    assert [row["name"] for row in page] == ["quantity", "amount"]


def test_ranges_are_bars_on_one_axis(sales: Page) -> None:
    found = sales.ask("ranges", version=7, column="sold_on", where="country = 'DE'")
    bars = found["bars"]
    assert len(bars) == found["numFiles"] == 18
    assert min(bar["at"] for bar in bars) == 0 and max(bar["to"] for bar in bars) == 1
    assert all(bar["at"] <= bar["to"] for bar in bars)
    assert sum(bar["read"] for bar in bars) == 6
    assert sales.ask("ranges", version=7, column="nope", status=400)["condition"]


def test_columns_without_bounds_say_so(tmp_path: Path) -> None:
    DeltaLog(tmp_path).write(pa.table({"l": [[1]], "s": [{"a.b": 1, "element": 2}], "b": [b"x"]}))
    with served(tmp_path) as page:
        columns = {row["name"]: row for row in page.ask("columns", version=0)["columns"]}
        assert columns["l"] == {
            "name": "l",
            "column": "l",
            "type": columns["l"]["type"],
            "bounds": False,
        }
        assert columns["s.`a.b`"]["low"] == "1" and columns["s.element"]["high"] == "2"
        found = page.ask("ranges", version=0, column=columns["s.`a.b`"]["column"])
        assert found["bars"][0]["from"] == "1"
        assert page.ask("ranges", version=0, column="l", status=400)["condition"]


def test_values_are_told_as_texts_that_lose_nothing(tmp_path: Path) -> None:
    long, text = 9007199254740993, "x" * 5000
    DeltaLog(tmp_path).write(
        pa.table({"n": [long, None, 1], "t": [text, "", None], "d": [float("nan"), 1.5, None]})
    )
    with served(tmp_path) as page:
        rows = page.ask("rows", version=0)["rows"]
        assert rows[0] == [str(long), "x" * 500 + "...", "nan"]
        assert rows[1:] == [[None, "", "1.5"], ["1", None, None]]
        assert page.ask("columns", version=0)["columns"][0]["high"] == str(long)


def test_rows_are_the_first_that_match(sales: Page, path: Path) -> None:
    found = sales.ask("rows", version=7, where="country = 'FR'", limit=4)
    assert len(found["rows"]) == 4 and found["more"] and not found["stopped"]
    at = [column["name"] for column in found["columns"]].index("country")
    assert {row[at] for row in found["rows"]} == {"FR"}
    everything = sales.ask("rows", version=7, limit=500)
    assert len(everything["rows"]) == DeltaLog(path).snapshot().scan().count() and not everything["more"]


def test_looking_for_rows_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeltaLog(tmp_path)
    for number in range(3):
        log.write(pa.table({"id": [number, number + 10]}))
    monkeypatch.setattr(rows_module, "_SECONDS", -1.0)
    with served(tmp_path) as page:
        found = page.ask("rows", version=2, where="id % 10 = 7")
        assert found["rows"] == [] and found["stopped"]


def test_health_is_that_of_the_command(sales: Page, path: Path) -> None:
    found, known = sales.ask("health"), health(DeltaLog(path))
    assert found["num_files"] == known.num_files == 18
    assert [each["command"] for each in found["due"]] == [due.command for due in known.due] != []


# --- odd tables


def test_texts_of_the_table_are_handed_over_as_they_are(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    odd = {"delta.columnMapping.mode": "name"}
    log.write(
        pa.table({EVIL: [1, 2], "p": [EVIL, "\ud7ff"]}),
        options={**odd, "partitionBy": "p", "userMetadata": EVIL},
    )
    with served(tmp_path) as page:
        assert page.ask("table")["columns"][0]["name"] == EVIL
        assert page.ask("timeline")["versions"][0]["userMetadata"] == EVIL
        values = [row["values"]["p"] for row in page.ask("partitions", version=0)["partitions"]]
        assert EVIL in values
        found = page.ask("columns", version=0)["columns"]
        assert found[0]["name"] == EVIL
        ranges = page.ask("ranges", version=0, column=found[0]["column"], where=f"`{EVIL}` = 2")
        assert ranges["column"] == EVIL
        reply = page.get("api/table")
        assert reply.headers["Content-Type"].startswith("application/json")


def test_a_table_without_files_or_partitions_has_answers_too(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    with served(tmp_path) as page:
        assert (page.ask("table")["files"], page.ask("table")["rows"]) == (0, 0)
        assert page.ask("files", version=0) == {"total": 0, "files": []}
        assert page.ask("partitions", version=0)["partitions"] == []
        assert page.ask("filter", version=0, where="id = 1")["strip"] == {"filesPerCell": 0, "cells": []}
        assert page.ask("columns", version=0)["columns"][0]["low"] is None
        assert page.ask("ranges", version=0, column="id")["bars"] == []
        assert page.ask("rows", version=0)["rows"] == []
        assert page.ask("timeline")["versions"][0]["files"] == 0


def test_files_without_statistics_have_unknown_rows(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_columns=["p"])
    table.append(pa.table({"id": [1]}), partition_values={"p": None})
    table.append(pa.table({"id": [2]}), partition_values={"p": None}, stats=False)
    with served(tmp_path) as page:
        assert page.ask("table")["rows"] is None
        assert sorted(str(row["rows"]) for row in page.ask("files", version=2)["files"]) == ["1", "None"]
        (only,) = page.ask("partitions", version=2)["partitions"]
        assert (only["values"], only["files"], only["rows"]) == ({"p": None}, 2, None)
        assert page.ask("columns", version=2)["columns"][0]["unknown"] == 1


def test_many_files_and_versions_have_short_answers(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_columns=["p"])
    adds = [
        {
            "add": {
                "path": f"p={n % 700}/f{n}.parquet", "partitionValues": {"p": str(n % 700)}, "size": n + 1,
                "modificationTime": n, "dataChange": True,
                "stats": f'{{"numRecords":1,"minValues":{{"id":{n}}},"maxValues":{{"id":{n}}},"nullCount":{{"id":0}}}}',
            }
        }
        for n in range(5000)
    ]  # fmt: skip
    version = table.commit(*adds)
    for _ in range(120):
        table.commit()
    with served(tmp_path) as page:
        answers = {
            "timeline": page.ask("timeline"),
            "commit": page.ask("commit", version=version),
            "partitions": page.ask("partitions", version=version),
            "files": page.ask("files", version=version, where="id > 2500"),
            "filter": page.ask("filter", version=version, where="id >= 2500"),
            "ranges": page.ask("ranges", version=version, column="id", where="id >= 2500"),
        }
    for name, found in answers.items():
        assert len(str(found)) < 60_000, name
    assert len(answers["timeline"]["versions"]) == 50 and answers["timeline"]["older"]
    assert answers["commit"]["counts"]["add"] == answers["files"]["total"] == 5000
    assert len(answers["files"]["files"]) == len(answers["partitions"]["partitions"]) == 50
    cells = answers["filter"]["strip"]["cells"]
    assert len(cells) == 400 and (cells[0], cells[-1]) == (0, 1)
    bars = answers["ranges"]["bars"]
    assert len(bars) == 200 and sum(bar["files"] for bar in bars) == 5000
    assert (bars[0]["read"], bars[-1]["read"]) == (0, 1)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("files", {"version": "x"}),
        ("files", {"version": "-1"}),
        ("files", {"version": "9" * 30}),
        ("files", {}),
        ("files", {"version": 7, "limit": 501}),
        ("files", {"version": 7, "limit": 0}),
        ("files", {"version": 7, "sort": "nope"}),
        ("files", {"version": 7, "bogus": 1}),
        ("timeline", {"before": "x"}),
        ("rows", {"version": 7, "descending": "true"}),
    ],
)
def test_parameters_are_checked(sales: Page, name: str, wrong: dict[str, Any]) -> None:
    assert sales.ask(name, status=400, **wrong)["condition"] == "DELTA_ILLEGAL_OPTION"


def test_nothing_of_the_table_is_changed(sales: Page, path: Path) -> None:
    before = contents(path)
    sales.ask("table")
    sales.ask("timeline")
    sales.ask("health")
    sales.ask("rows", version=7)
    for name in ("files", "partitions", "columns", "commit"):
        sales.ask(name, version=7)
    assert contents(path) == before


def test_many_requests_at_a_time_have_the_same_answer(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with served(path) as page, ThreadPoolExecutor(8) as clients:
        began = time.monotonic()
        found = list(clients.map(lambda _: page.ask("filter", version=7, where=WHERE), range(24)))
        assert all(each == found[0] for each in found) and time.monotonic() - began < 60
