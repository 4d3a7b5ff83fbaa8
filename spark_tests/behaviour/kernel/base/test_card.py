"""Cards: what notebooks show is small, harmless whatever a table holds, and made of what is at hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog, Snapshot
from delta_ds.kernel.base.card import Card, CardTable, Share, Shown, listed, plain, size_text, table_of
from delta_ds.kernel.commands.health import health
from delta_ds.kernel.log.history import History
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.testing import TableBuilder
from spark_tests.full_form import examples

TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"' & $x$ `\u202e\x00\n"
SIZE = 40_000


class Parsed(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.styles: set[str] = set()
        self.feed(html)
        self.close()
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS and {name for name, _ in attributes} <= {"style", "class"}
        self.styles |= {value or "" for name, value in attributes if name == "style"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


def shown(thing: Shown) -> Parsed:
    """What a notebook shows: checked to be harmless, small, and to say the same as text."""
    html = thing._repr_html_()
    assert len(html) < SIZE
    html.encode()
    text = thing._card().text()
    assert len(text) < SIZE and all(line.isprintable() for line in text.split("\n"))
    return Parsed(html)


@settings(max_examples=examples(60), deadline=None)
@given(st.text() | st.text("<>&\"'/= scriptonerr\ud800\u202e"), st.text())
@example(HOSTILE, HOSTILE)
def test_texts_never_become_markup(one: str, other: str) -> None:
    card = Card(
        one,
        [(other, one), (one, Share(0.3))],
        [CardTable([one, other], [(one, 5), (None, other)], 3)],
        note=other,
    )
    harmless = Card(
        "x", [("x", "x"), ("x", Share(0.3))], [CardTable(["x", "x"], [("x", 5), (None, "x")], 3)], "x"
    )
    assert Parsed(card.html()).styles == Parsed(harmless.html()).styles
    card.html().encode()
    assert plain(one) in Parsed(card.html()).texts[0] if one else True
    assert all(line.isprintable() for line in card.text().split("\n"))


@settings(max_examples=examples(15), deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
@example(HOSTILE)
def test_tables_that_hold_markup_are_shown_as_text(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    log = hostile_table(tmp_path_factory.mktemp("t") / "<script>alert(1)<", text)
    snapshot = log.snapshot()
    for thing in everything_shown(log, snapshot):
        shown(thing)
    assert plain(text, 160) in "".join(shown(snapshot).texts)
    assert plain(text, 160) in "".join(shown(log.history()).texts)


def hostile_table(path: Path, text: str) -> DeltaLog:
    table = TableBuilder(path)
    columns = [pa.field(text, pa.int64(), metadata={b"comment": text.encode()}), pa.field("id", pa.int64())]
    table.create(pa.schema(columns), properties={f"my.{text}": text})
    info = {"operationParameters": {text: text}, "operationMetrics": {text: text}, "userMetadata": text}
    add = {"path": "f", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    table.commit({"add": add}, operation=text, **info)
    return DeltaLog(path)


def everything_shown(log: DeltaLog, snapshot: Snapshot) -> list[Shown]:
    scan = snapshot.scan("id > 5 and cast(id as string) <> '<b>'", metadata_columns=["file_path"])
    return [
        log,
        snapshot,
        snapshot.schema,
        scan,
        log.history(),
        scan.explain(),
        snapshot.column_layout("id"),
        log.timeline(),
        health(log),
    ]


def test_cards_of_large_tables_are_small(tmp_path: Path) -> None:
    """10,000 files, 2,000 columns, 2,000 properties, long texts everywhere."""
    pick = random.Random(1)
    long = "x" * 100_000
    table = TableBuilder(tmp_path)
    columns = [
        pa.field(f"column_{n}", pa.int64(), metadata={b"comment": long[:300].encode()}) for n in range(2000)
    ]
    table.create(pa.schema(columns), properties={f"my.property.{n}": "y" * 200 for n in range(2000)})
    for first in range(0, 10_000, 2500):
        table.commit(*[big_file(first + n, pick) for n in range(2500)], userMetadata=long)
    log = DeltaLog(tmp_path)
    snapshot = log.snapshot()
    many = " or ".join(f"column_{n} = {n}" for n in range(60)) + " and column_1 > 5"
    things = [snapshot, log.history(), log.timeline(), snapshot.column_layout("column_0")]
    for thing in [*things, snapshot.scan(many).explain()]:
        shown(thing)
    assert "and 1,980 more" in shown(snapshot).texts
    assert "10,000, 97.7 KiB" in "".join(shown(snapshot).texts)


def big_file(number: int, pick: random.Random) -> dict[str, Any]:
    low = pick.randrange(1000)
    stats = {"numRecords": 5, "minValues": {"column_0": low}, "maxValues": {"column_0": low + 9}}
    return {
        "add": {
            "path": f"{number:0200}", "partitionValues": {}, "size": 10, "modificationTime": 0, "dataChange": True,
            "stats": json.dumps(stats),
        }
    }  # fmt: skip


@pytest.mark.parametrize("load", [False, True])
def test_a_snapshot_is_shown_without_its_store(monkeypatch: pytest.MonkeyPatch, load: bool) -> None:
    log = DeltaLog("examples/data/sales")
    snapshot = log.snapshot()
    if load:
        snapshot.files()
    offline(monkeypatch, type(log.storage))
    parsed = shown(snapshot)
    assert ("files" in parsed.texts) == load
    assert str(snapshot).startswith("Delta table ") and repr(snapshot).endswith("version=7)")


def offline(monkeypatch: pytest.MonkeyPatch, kind: type[Storage]) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a store is asked for what is only to be shown")

    methods: list[Callable[..., Any]] = [m for m in vars(kind).values() if callable(m)]
    for method in methods:
        if not method.__name__.startswith("_") and method.__name__ not in ("url",):
            monkeypatch.setattr(kind, method.__name__, refuse)


def test_files_of_a_cached_version_are_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_DS_CACHE", str(tmp_path / "cache"))
    table = TableBuilder(tmp_path / "t")
    table.create(pa.schema([("id", pa.int64())]))
    for n in range(60):
        table.commit(big_file(n, random.Random(0)))
    log = DeltaLog(tmp_path / "t")
    log.snapshot().files()
    snapshot = log.snapshot()
    offline(monkeypatch, type(log.storage))
    assert "60, 600 B" in "".join(shown(snapshot).texts)


def test_history_is_a_list_that_is_shown_as_a_table() -> None:
    found = DeltaLog("examples/data/sales").history()
    assert isinstance(found, list) and json.dumps(found, default=str) == json.dumps(list(found), default=str)
    assert "MERGE" in str(found) and "MERGE" in shown(found).texts
    assert str(History()) == "History, 0 commits"


def test_odd_moments_do_not_hide_a_table(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    for moment in (10**18, -(10**18), "soon", None, 0):
        info = {"timestamp": moment, "inCommitTimestamp": moment, "operation": 5}
        table.commit({"commitInfo": info}, operation=None)
    log = DeltaLog(tmp_path)
    for thing in everything_shown(log, log.snapshot()):
        shown(thing)


def test_small_pieces() -> None:
    assert [size_text(n) for n in (None, 0, 1023, 1024, 5 << 40)] == [
        "",
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 TiB",
    ]
    assert listed([]) is None and str(listed(["a"] * 25)).endswith("and 5 more")
    assert plain("x" * 500).endswith("…") and len(plain("x" * 500)) == 160
    assert table_of(("a", "b"), [(1, None), (2, "")], lambda row: row).columns == ["a"]
    text = Card("t", [("a", None), ("b", True)], [CardTable(["n", "of"], [(1234567, Share(0.5))])]).text()
    assert text.split("\n")[1:] == ["  b: True", "          n  of", "  1,234,567  ##########.........."]


def test_a_log_a_schema_and_a_scan_show_what_is_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "name": ["a"]}))
    snapshot = log.snapshot()
    scan = snapshot.scan("id > 0", ["name"])
    looked_at = snapshot.scan("id > 5")
    assert looked_at.num_files == 0
    for name in ("read", "open", "status", "exists", "list_from"):
        monkeypatch.setattr(Storage, name, None)
        monkeypatch.setattr("delta_ds.kernel.storage.local.LocalStorage." + name, None)
    assert str(tmp_path) in "".join(shown(log).texts)
    assert {"name", "string", "yes"} <= set(shown(snapshot.schema).texts)
    texts = shown(scan).texts
    assert "id > 0" in texts and "name" in texts and "id" not in texts
    assert any("not been looked at yet" in text for text in texts)
    texts = shown(looked_at).texts
    assert texts[texts.index("files to read") + 1] == "0"
    assert looked_at._repr_html_() and not any("not been looked at yet" in text for text in texts)
