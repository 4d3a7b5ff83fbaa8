"""Reconciliation: whatever the history, the live files are those of a naive replay."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import CorruptLogFileError, DeltaLog, LogError
from delta_ds.kernel.log.json_actions import find_actions
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.log.reconcile import keys_at, newest_rows
from delta_ds.kernel.log.replay import Base, load_state
from delta_ds.kernel.log.segment import find_segment
from delta_ds.testing import TableBuilder, json_lines, metadata_action, protocol_action, remove_action
from spark_tests.full_form import examples

SCHEMA = pa.schema([("id", pa.int64())])


def add(path: str, vector: str | None = None, **fields):
    body = {
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        **fields,
    }
    if vector:
        body["deletionVector"] = {
            "storageType": "i", "pathOrInlineDv": vector, "sizeInBytes": 4, "cardinality": 1,
        }  # fmt: skip
    return {"add": body}


def live(path, version=None):
    table = DeltaLog(path).snapshot(version).files()
    vectors = table["deletionVector"].to_pylist()
    return sorted(
        (p, v and v["pathOrInlineDv"]) for p, v in zip(table["path"].to_pylist(), vectors, strict=True)
    )


@st.composite
def histories(draw):
    """Commits of adds and removes over few paths, so that they meet often."""
    paths = [f"f{i}.parquet" for i in range(4)]
    commits = []
    state: set[tuple[str, str | None]] = set()
    for _ in range(draw(st.integers(1, 8))):
        actions, touched = [], set()
        for path in draw(st.lists(st.sampled_from(paths), max_size=4, unique=True)):
            vectors = [key for key in state if key[0] == path]
            choice = draw(st.sampled_from(["add", "remove", "swap"]))
            if choice == "add" and not vectors:
                actions.append(add(path))
                touched.add((path, None))
            elif vectors:
                old = vectors[0]
                actions.append(remove_action(add(*old)))
                state.discard(old)
                if choice == "swap":
                    new = draw(st.sampled_from(["aaaaa", "bbbbb"]))
                    if (path, new) != old:
                        actions.append(add(path, new))
                        touched.add((path, new))
        state |= touched
        commits.append((draw(st.permutations(actions)), frozenset(state)))
    return commits


@given(histories(), st.sampled_from([None, "v1", "multi-part", "v2-parquet", "v2-json"]), st.booleans())
@settings(max_examples=examples(60))
def test_live_files_are_those_of_a_naive_replay(history, checkpoint, compact):
    with tempfile.TemporaryDirectory() as folder:
        table = TableBuilder(folder)
        table.create(SCHEMA, reader_features=["deletionVectors", "v2Checkpoint"])
        for actions, _ in history:
            table.commit(*actions)
        middle = (table.version + 1) // 2
        if checkpoint:
            table.checkpoint(checkpoint, version=middle)
        if compact and middle > 1:
            table.compact(1, middle)
        for version in {middle, table.version}:
            expected = history[version - 1][1] if version else frozenset()
            assert live(folder, version) == sorted(expected, key=lambda k: (k[0], k[1] or ""))


@pytest.fixture
def table(tmp_path):
    builder = TableBuilder(tmp_path)
    builder.create(SCHEMA)
    return builder


def test_a_file_added_again_after_its_removal_lives(table):
    table.commit(add("a"))
    table.commit(remove_action(add("a")))
    table.commit(add("a", size=7))
    assert DeltaLog(table.path).snapshot().files()["size"].to_pylist() == [7]


def test_adding_a_live_file_again_replaces_its_statistics(table):
    table.commit(add("a", stats='{"numRecords":1}'))
    table.commit(add("a", stats='{"numRecords":2}'))
    assert DeltaLog(table.path).snapshot().files()["stats"].to_pylist() == ['{"numRecords":2}']


@pytest.mark.parametrize(
    "spelling",
    ["a%20b.parquet", "{root}/a%20b.parquet", "file:{root}/a%20b.parquet", "file://{root}/a%20b.parquet"],
)
def test_a_file_is_removed_by_any_spelling_of_its_path(table, spelling):
    table.commit(add("a%20b.parquet"))
    table.commit(remove_action(add(spelling.format(root=str(table.path).replace(" ", "%20")))))
    assert live(table.path) == []


def test_the_statistics_of_a_checkpoint_are_read_for_its_survivors(table):
    for name in "abc":
        table.commit(add(name, stats=json.dumps({"numRecords": ord(name)})))
    table.checkpoint()
    table.commit(remove_action(add("b")), add("d", stats='{"numRecords":5}'))
    files = DeltaLog(table.path).snapshot().files()
    got = dict(zip(files["path"].to_pylist(), files["stats"].to_pylist(), strict=True))
    assert {k: json.loads(v)["numRecords"] for k, v in got.items()} == {"a": 97, "c": 99, "d": 5}


def test_transactions_and_domains_keep_the_newest_and_drop_removed_ones(table):
    table.commit({"txn": {"appId": "a", "version": 3}}, {"txn": {"appId": "b", "version": 1}})
    table.commit({"domainMetadata": {"domain": "x", "configuration": "1", "removed": False}})
    table.commit({"domainMetadata": {"domain": "y", "configuration": "2", "removed": False}})
    table.checkpoint()
    table.commit({"txn": {"appId": "a", "version": 2}})
    table.commit({"domainMetadata": {"domain": "x", "configuration": "1", "removed": True}})
    snapshot = DeltaLog(table.path).snapshot()
    assert snapshot.txns == {"a": 2, "b": 1}
    assert snapshot.domains == {"y": "2"}


def test_partition_values_survive_a_change_of_the_partition_columns(table):
    table.commit(add("a"))
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.string())])
    table.commit(metadata_action(schema, ["p"]), add("b", partitionValues={"p": "1"}))
    table.checkpoint()
    table.commit(metadata_action(schema, ["q"]), add("c", partitionValues={"q": "2"}))
    files = DeltaLog(table.path).snapshot().files()
    values = dict(zip(files["path"].to_pylist(), files["partitionValues"].to_pylist(), strict=True))
    assert values["b"] == {"p": "1", "q": None}
    assert values["c"] == {"p": None, "q": "2"}


@pytest.mark.parametrize(
    ("written", "size"), [('"size":"12"', 12), ('"size":12.0', 12), ('"size":12,"size":13', 13)]
)
def test_oddly_written_numbers_are_read_as_spark_reads_them(table, written, size):
    line = '{"add":{"path":"a","partitionValues":{},%s,"modificationTime":1,"dataChange":true}}\n' % written
    table.raw_commit(line.encode())
    assert DeltaLog(table.path).snapshot().files()["size"].to_pylist() == [size]


def test_blank_lines_and_carriage_returns_are_harmless(table):
    content = json_lines([add("a"), add("b")]).replace(b"\n", b"\r\n\r\n")
    table.raw_commit(b"\n\n" + content)
    assert [p for p, _ in live(table.path)] == ["a", "b"]


def test_a_log_is_the_same_however_its_commits_are_spaced(table):
    spaced = b"".join(
        json.dumps(action, indent=None, separators=(" , ", " : ")).encode() + b"\n"
        for action in (protocol_action(), metadata_action(SCHEMA), add("z"))
    )
    table.raw_commit(spaced)
    assert [p for p, _ in live(table.path)] == ["z"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"add":{"path":"a"',
        b'{"add":{"path":"a"}} trailing',
        b"[1]",
        b"5",
        b'{"add":{"size":1}}',
        b'{"add":{"path":7}}',
        b'{"add":5}',
        b'{"add":{"path":"\xff"}}',
        b'{"add":{"path":"a","size":"many"}}',
        b'{"txn":{"appId":"a"}}',
        b'{"protocol":{"minReaderVersion":"one","minWriterVersion":2}}',
        b'{"metaData":{"id":"x","schemaString":5}}',
        b"",
        b"\x00\x00\x00",
    ],
)
def test_a_damaged_commit_is_an_error_that_names_its_file(table, line):
    table.commit(add("before"))
    table.raw_commit(line)
    with pytest.raises(LogError, match="00000000000000000002.json"):
        DeltaLog(table.path).snapshot().files()


@pytest.mark.parametrize("missing", ["protocol", "metaData"])
def test_a_log_without_protocol_or_metadata_is_refused(tmp_path, missing):
    actions = [a for a in (protocol_action(), metadata_action(SCHEMA), add("a")) if missing not in a]
    TableBuilder(tmp_path).commit(*actions)
    with pytest.raises(LogError, match="could not be recovered") as error:
        DeltaLog(tmp_path).snapshot()
    assert error.value.condition == "DELTA_STATE_RECOVER_ERROR"


def test_unknown_actions_and_fields_are_ignored(table):
    table.commit({"novelty": {"x": 1}}, add("a", surprise={"deep": [1, {"x": None}]}))
    assert [p for p, _ in live(table.path)] == ["a"]


def test_find_actions_sees_only_top_level_keys():
    stats = json.dumps({"minValues": {"metaData": 1}})
    data = json_lines([{"commitInfo": {"metaData": {}}}, add("x", stats=stats), metadata_action(SCHEMA)])
    found = find_actions(data, ("metaData",), "here")
    assert [next(iter(a)) for a in found] == ["metaData"]


def test_opening_a_table_does_not_read_its_files(table):
    table.raw_commit(b'{"add":{"path":7}}\n')
    log = DeltaLog(table.path)
    assert log.snapshot().schema.names == ["id"]
    with pytest.raises(CorruptLogFileError):
        log.snapshot().files()


def test_a_checksum_file_saves_a_long_search_and_is_not_believed_against_the_log(table):
    for i in range(20):
        table.commit(add(f"f{i}"))
    table.checksum()
    assert DeltaLog(table.path).snapshot().files().num_rows == 20
    lie = metadata_action(pa.schema([("other", pa.string())]))["metaData"]
    table.checksum(metadata=lie)
    with pytest.raises(LogError, match="contradicts"):
        DeltaLog(table.path).snapshot().files()


def test_a_checksum_with_wrong_counts_is_reported_and_the_log_counts(table, caplog):
    table.commit(add("a"))
    table.checksum(numFiles=5)
    assert DeltaLog(table.path).snapshot().files().num_rows == 1
    assert "checksum_mismatch" in caplog.text


def test_a_torn_checksum_is_of_no_matter(table):
    table.commit(add("a"))
    Path(table.checksum()).write_bytes(b'{"numFiles":')
    assert DeltaLog(table.path).snapshot().files().num_rows == 1


@given(
    st.lists(st.lists(st.none() | st.sampled_from(["a", "b", "c", "d\0x"]), max_size=4), max_size=5),
    st.integers(0, 2),
)
@settings(max_examples=examples(100))
def test_the_newest_row_of_a_key_is_its_last_over_all_chunks(chunks, skipped):
    keys = pa.chunked_array([pa.array(c, pa.string())[skipped:] for c in chunks], pa.string())
    rows = keys.to_pylist()
    expected = [key is not None and key not in rows[n + 1 :] for n, key in enumerate(rows)]
    newest = newest_rows(keys)
    assert newest.tolist() == expected
    assert keys_at(keys, newest).to_pylist() == [k for k, last in zip(rows, expected, strict=True) if last]


@pytest.mark.parametrize("removed", [range(0), range(400, 420), range(0, 300), range(0, 900, 2)])
def test_live_adds_are_the_same_shared_or_copied(table, removed):
    """None dead; a short run of dead ones; a third of them; every other one."""
    table.commit(*(add(f"f{n}", stats=f"s{n}") for n in range(900)))
    table.commit(*(remove_action(add(f"f{n}")) for n in removed))
    files = DeltaLog(table.path).open_snapshot().live_files()
    expected = [n for n in range(900) if n not in removed]
    assert files.table["path"].to_pylist() == [f"f{n}" for n in expected]
    assert files.stats_json().to_pylist() == [f"s{n}" for n in expected]
    files.table.validate(full=True)


def test_files_found_anew_by_another_thread_keep_their_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    adds = [table.write_file(pa.table({"id": [i]}), path=f"f{i}.parquet") for i in range(8)]
    table.commit(*adds)
    table.checkpoint(version=1, hint=False)
    table.commit(remove_action(adds[0]))
    (newest,) = table.checkpoint(version=2, hint=False)
    actions = pq.read_table(newest)
    pq.write_table(actions.take(list(reversed(range(actions.num_rows)))), newest)
    table.append(pa.table({"id": [50]}))
    storage = DeltaLog(tmp_path).storage
    base = Base(3, load_state(storage, find_segment(storage, 3)))
    table.append(pa.table({"id": [60]}))
    parts_of, kind, done = LiveFiles.parts.fget, type(storage), [False]
    assert parts_of is not None
    opened = kind.open_known

    def out_of_handles(self: Any, path: str, *more: Any) -> Any:
        if path.endswith(newest.name):
            raise OSError(24, "Too many open files")
        return opened(self, path, *more)

    def parts(self: LiveFiles) -> Any:
        of_one_moment = parts_of(self)
        if self is base.state.files and not done[0]:
            done[0] = True
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(kind, "open_known", out_of_handles)
                list(self.stats_texts())
        return of_one_moment

    monkeypatch.setattr(LiveFiles, "parts", property(parts))
    files = load_state(storage, find_segment(storage, 4), base).files
    bounds = [json.loads(text)["minValues"]["id"] for text in files.stats_json().to_pylist()]
    names = files.table["path"].to_pylist()
    assert done[0] and [bounds[names.index(f"f{i}.parquet")] for i in range(1, 8)] == list(range(1, 8))
