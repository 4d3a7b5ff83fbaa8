"""Net changes: for any history, what they say of each key is what happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog, InvalidOptionError, InvariantViolationError, SchemaError
from delta_ds.kernel.commands.changes.key_codes import key_codes, key_hashes
from delta_ds.kernel.commands.changes.net import Net
from delta_ds.kernel.commands.changes.net_memory import net_batches
from delta_ds.testing import TableBuilder, remove_action
from spark_tests.behaviour.kernel.commands.streaming.streams import rows, table
from spark_tests.full_form import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("value", pa.float64()),
        ("more", pa.struct([("list", pa.list_(pa.int64())), ("text", pa.string())])),
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)
KEYS = ("a", "b")
# Bytes: nothing fits, some versions do, all of them.
MEMORY = st.sampled_from([0, 700, *[2000] * 3, *[None] * 10])
Key = tuple[Any, Any]
Value = tuple[Any, Any]

VALUES = st.tuples(
    st.sampled_from([0.0, 1.0, float("nan"), None]),
    st.sampled_from(
        [None, {"list": [1, None], "text": "x"}, {"list": None, "text": None}, {"list": [], "text": ""}]
    ),
)
# Versions: of some keys each, what becomes of it.
HISTORIES = st.lists(
    st.dictionaries(
        st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, "", "ü"])),
        st.none() | VALUES,
        max_size=6,
    ),
    min_size=1,
    max_size=8,
)


def changed(version: int, kind: str, key: Key, value: Value) -> dict[str, Any]:
    row = {"a": key[0], "b": key[1], "value": value[0], "more": value[1]}
    moment = datetime.fromtimestamp(version, timezone.utc)
    return {**row, "_change_type": kind, "_commit_version": version, "_commit_timestamp": moment}


class History:
    """The versions of a table, and the feed between them."""

    def __init__(self, versions: Sequence[dict[Key, Value | None]], rewrites: bool) -> None:
        self.states: list[dict[Key, Value]] = [{}]
        self.feed: list[list[dict[str, Any]]] = []
        for number, changes in enumerate(versions, 1):
            state, feed = dict(self.states[-1]), []
            for key, value in changes.items():
                before = state.pop(key, None)
                update = before is not None and value is not None and not rewrites
                if value is not None:
                    state[key] = value
                    feed.append(changed(number, "update_postimage" if update else "insert", key, value))
                if before is not None:
                    feed.append(changed(number, "update_preimage" if update else "delete", key, before))
            self.states.append(state)
            self.feed.append(feed)

    def net(self, first: int, last: int, net: Net, memory: int | None = None) -> list[dict[str, Any]]:
        return netted([row for feed in self.feed[first:last] for row in feed], net, memory)


def netted(feed: Sequence[dict[str, Any]], net: Net, memory: int | None = None) -> list[dict[str, Any]]:
    # Several batches a version: the bound of memory is looked at between them.
    batches = [pa.RecordBatch.from_pylist(list(feed[at : at + 2]), SCHEMA) for at in range(0, len(feed), 2)]
    found = list(net_batches(batches, SCHEMA, KEYS, net, "/data/t", memory))
    assert all(batch.schema == SCHEMA for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def plain(found: Sequence[dict[str, Any]]) -> list[str]:
    """Rows to compare: NaN is equal to itself as text."""
    return sorted(repr(row) for row in found)


def timeless(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if not k.startswith("_commit")} for row in found]


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@SETTINGS
@given(versions=HISTORIES, rewrites=st.booleans(), data=st.data(), memory=MEMORY)
def test_the_net_changes_make_the_later_version_of_the_earlier_one(
    versions: Any, rewrites: bool, data: st.DataObject, memory: int | None
) -> None:
    history = History(versions, rewrites)
    first = data.draw(st.integers(0, len(versions)))
    last = data.draw(st.integers(first, len(versions)))
    found = history.net(first, last, "net", memory)
    state = dict(history.states[first])
    seen: dict[Key, list[str]] = {}
    for row in found:
        key, value = (row["a"], row["b"]), (row["value"], row["more"])
        kind = row["_change_type"]
        seen.setdefault(key, []).append(kind)
        if kind in ("delete", "update_preimage"):
            assert same(state.pop(key), value)
        else:
            assert key not in state
            state[key] = value
    assert same(sorted(state.items(), key=repr), sorted(history.states[last].items(), key=repr))
    # Minimal: only keys that differ, each once, or as the two sides of an update one after the other.
    for key, kinds in seen.items():
        assert kinds in (["insert"], ["delete"], ["update_preimage", "update_postimage"])
        assert not same(history.states[first].get(key), history.states[last].get(key))
    places = [n for n, row in enumerate(found) if row["_change_type"] == "update_preimage"]
    assert all((found[n]["a"], found[n]["b"]) == (found[n + 1]["a"], found[n + 1]["b"]) for n in places)


@SETTINGS
@given(versions=HISTORIES, rewrites=st.booleans(), data=st.data(), net=st.sampled_from(["net", "latest"]))
def test_net_changes_of_net_changes_are_those_of_the_whole(
    versions: Any, rewrites: bool, data: st.DataObject, net: Net
) -> None:
    history = History(versions, rewrites)
    middle = data.draw(st.integers(0, len(versions)))
    parts = [*history.net(0, middle, net), *history.net(middle, len(versions), net)]
    if net == "latest":
        # Of a key that came and went the latest of each part may both be an insert or a delete.
        keys = {(row["a"], row["b"]): row for row in parts}
        assert plain(list(keys.values())) == plain(history.net(0, len(versions), net))
    else:
        # All but when: an update without effect leaves no trace in its part, and is the last change of the whole.
        assert plain(timeless(netted(parts, net))) == plain(timeless(history.net(0, len(versions), net)))


@SETTINGS
@given(versions=HISTORIES, rewrites=st.booleans(), memory=MEMORY)
def test_the_latest_is_the_last_change_of_each_key(versions: Any, rewrites: bool, memory: int | None) -> None:
    history = History(versions, rewrites)
    last: dict[Key, dict[str, Any]] = {}
    for feed in history.feed:
        for row in sorted(feed, key=lambda row: row["_change_type"] in ("insert", "update_postimage")):
            last[row["a"], row["b"]] = row
    expected = [
        {**row, "_change_type": row["_change_type"].replace("update_preimage", "delete")}
        for row in last.values()
    ]
    found = history.net(0, len(versions), "latest", memory)
    assert plain(timeless(found)) == plain(timeless(expected))
    assert {row["_commit_version"] for row in found} == {row["_commit_version"] for row in expected}


def test_a_key_that_moves_is_gone_from_where_it_was() -> None:
    feed = [
        changed(1, "update_preimage", (1, "x"), (1.0, None)),
        changed(1, "update_postimage", (2, "x"), (1.0, None)),
        changed(1, "update_preimage", (2, "x"), (2.0, None)),
        changed(1, "update_postimage", (3, "x"), (2.0, None)),
    ]
    found = [(row["a"], row["_change_type"], row["value"]) for row in netted(feed, "net")]
    update = [(2, "update_preimage", 2.0), (2, "update_postimage", 1.0)]
    assert sorted(found, key=lambda one: one[0]) == [(1, "delete", 1.0), *update, (3, "insert", 2.0)]
    latest = {(row["a"], row["_change_type"]) for row in netted(feed, "latest")}
    assert latest == {(1, "delete"), (2, "update_postimage"), (3, "update_postimage")}


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize(
    "kinds",
    [
        [(1, "insert"), (1, "insert")],
        [(1, "delete"), (1, "update_preimage")],
        [(1, "insert"), (2, "insert")],
        [(1, "delete"), (2, "update_preimage")],
        [(1, "delete"), (2, "insert"), (3, "insert"), (4, "delete")],
    ],
)
@pytest.mark.parametrize("net", ["net", "latest"])
def test_keys_that_do_not_tell_rows_apart_are_refused(
    kinds: list[tuple[int, str]], net: Net, memory: int | None
) -> None:
    feed = [changed(version, kind, (1, "é"), (float(version), None)) for version, kind in kinds]
    with pytest.raises(
        InvariantViolationError, match=r'/data/t.*a, b.*\{"a":1,"b":"é","_commit_version":'
    ) as raised:
        netted(feed, net, memory)
    assert raised.value.condition == "DELTA_NET_CHANGES_DUPLICATE_KEY"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [1, 2, None, 1]),
        (pa.string(), ["", "ab", None, ""]),
        (pa.binary(), [b"", b"\0", None, b""]),
        (pa.bool_(), [True, False, None, True]),
        (pa.date32(), [0, 1, None, 0]),
        (pa.timestamp("us", "UTC"), [0, 1, None, 0]),
        (pa.decimal128(38, 2), [1, 2, None, 1]),
        (pa.float32(), [0.0, float("nan"), None, -0.0]),
        (pa.float64(), [float("nan"), 0.0, None, float("nan")]),
        (pa.int8(), [1, -1, None, 1]),
    ],
)
def test_equal_keys_have_one_code_and_one_hash(kind: pa.DataType, values: list[Any]) -> None:
    for offset in (0, 1):
        column = pa.array([values[1]] * offset + values, kind)[offset:]
        found = pa.table({"k": pa.chunked_array([column]), "l": pa.nulls(4, pa.int64())})
        for numbers in (key_codes(found, ["k", "l"]), key_hashes(found, ["l", "k"])):
            assert numbers[0] == numbers[3] and len(set(numbers.tolist())) == 3
    # A slice, a table of its own: the same hash.
    assert key_hashes(found.slice(3), ["k"]) == key_hashes(found, ["k"])[3]


def test_hashes_spread_texts_that_are_alike() -> None:
    texts = pa.table({"k": [f"customer-{n:08d}" for n in range(10_000)]})
    places = key_hashes(texts, ["k"]) % 32
    counts = [(places == n).sum() for n in range(32)]
    assert min(counts) > 200 and len(set(key_hashes(texts, ["k"]).tolist())) == 10_000


def feed(path: Path) -> TableBuilder:
    builder = table(path, properties={"delta.enableChangeDataFeed": "true"})
    builder.append(rows(1, 2, 3))
    return builder


def test_a_table_gives_its_net_changes(tmp_path: Path) -> None:
    builder = feed(tmp_path)
    add = builder.state()[-1]
    builder.commit(remove_action(add), builder.write_file(rows(2, 3, 4)), operation="WRITE")
    log = DeltaLog(tmp_path)
    changes = log.changes(2, net="net", keys=["ID"])
    assert (changes.net, changes.keys) == ("net", ("id",))
    found = changes.to_arrow()
    assert found.schema == log.changes(2).to_arrow().schema
    assert [(r["id"], r["_change_type"], r["_commit_version"]) for r in found.sort_by("id").to_pylist()] == [
        (1, "delete", 2),
        (4, "insert", 2),
    ]
    assert [b.num_rows for b in changes.to_batches()] == [2]
    latest = log.changes(1, net="LATEST", keys=("id",)).to_arrow().sort_by("id")
    assert latest["_change_type"].to_pylist() == ["delete", "insert", "insert", "insert"]
    assert log.changes(1, 1, net="net", keys=["id"]).to_arrow().num_rows == 3
    assert len(changes.slices()) == 2


def test_what_cannot_be_netted_is_refused_before_rows_are_read(tmp_path: Path) -> None:
    feed(tmp_path)
    log = DeltaLog(tmp_path)
    with pytest.raises(SchemaError, match="'idd', which is no column; did you mean 'id'"):
        log.changes(1, net="net", keys=["idd"])
    with pytest.raises(SchemaError, match="its columns are id"):
        log.changes(1, net="net", keys=["_change_type"])
    for keys in (None, []):
        with pytest.raises(InvalidOptionError, match="net=latest needs 'keys'.*row ids"):
            log.changes(1, net="latest", keys=keys)
    with pytest.raises(InvalidOptionError, match="'keys' goes with 'net'"):
        log.changes(1, keys=["id"])
    with pytest.raises(InvalidOptionError, match="invalid value 'last' for 'net'.*'latest'"):
        log.changes(1, net="last", keys=["id"])
    nested = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))])
    builder = TableBuilder(tmp_path / "nested")
    builder.create(nested, properties={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(SchemaError, match="'s': values of type struct"):
        DeltaLog(tmp_path / "nested").changes(0, net="net", keys=["id", "s"])
