"""Whatever is done to the files of a table, every command ends with an answer or a `DeltaError`, and in time.

Not a word is said here of right rows but where damage leaves no doubt of them: `test_fuzz.py` compares rows. What is
damaged is a table with all that a log can hold. A quick run tries some commands on some damage; DELTA_DS_FULL=1 tries
every command on each.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.exceptions import DeltaError
from spark_tests.faults.corrupted import damage
from spark_tests.faults.corrupted.every_command import EVERY, KEEPING, READING, attempt, attempt_all, rows_of
from spark_tests.faults.corrupted.templates import CHECKPOINTS, KINDS, copy_of
from spark_tests.full_form import FULL, QUICK

_SEEDS = 300 if FULL else 1 if QUICK else 3
_COMMANDS = len(EVERY) if FULL else 8
_MOST_MEMORY = 8 << 30


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """What asks for more than any of these tables needs fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    return lambda kind: copy_of(kind, tmp_path / "table")


def some_commands(random: Random) -> list[str]:
    return random.sample(sorted(EVERY), _COMMANDS)


@pytest.mark.parametrize("kind", KINDS)
def test_without_damage_commands_answer_or_say_why_not(kind: str, table: Callable[[str], Path]) -> None:
    path = table(kind)
    found = attempt_all(path, sorted(EVERY) if FULL else some_commands(Random(kind)))
    failed = {name for name, outcome in found.items() if outcome.error is not None}
    # What such a table has no place for: partitions or clustering, mapped columns or none, keys that are not unique.
    assert failed <= {
        "net changes", "pydelta diff ", "pydelta diff --json", "z-order", "manifest", "cluster", "column away",
        "column renamed", "columns replaced", "feature and history away", "a timestamp", "optimize, all anew",
        "overwrite of the schema",
    }, {name: found[name] for name in failed}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(KEEPING) if FULL else ["checkpoint", "optimize, all anew", "vacuum"])
def test_what_keeps_rows_keeps_them(name: str, kind: str, table: Callable[[str], Path]) -> None:
    path = table(kind)
    before = rows_of(path)
    attempt(name, path)
    assert rows_of(path) == before


@pytest.mark.parametrize("seed", range(_SEEDS))
@pytest.mark.parametrize("way", sorted(damage.WAYS))
def test_damage_of_every_kind(way: str, seed: int, table: Callable[[str], Path]) -> None:
    random = Random(f"{way} {seed}")
    path = table(random.choice(KINDS))
    damage.WAYS[way](path, random)
    try:
        before = rows_of(path)
    except DeltaError:
        before = None
    for name in some_commands(random):
        if name in READING:
            attempt(name, path)
        else:
            with tempfile.TemporaryDirectory() as scratch:
                copy = damage.copied(path, Path(scratch) / "table")
                outcome = attempt(name, copy)
                if name in KEEPING and outcome.error is None and before is not None:
                    assert rows_of(copy) == before, f"{name} changed rows"


# What can be said of a field that is no text, and of one that is.
HOSTILE: list[Any] = [
    ..., None, True, -1, 10**18, 2**63, 10**30, 1.5, "", "x", "\ud800", "9" * 400, [], ["x"], [1], {}, {"a": 1},
    {"a": "b"}, "../x", "[1]", '{"a":',
]  # fmt: skip


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in an action, also inside JSON that stands in a text."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        here = (*path, key)
        yield here
        if isinstance(value, str) and value[:2] in ('{"', "[["):
            yield from places(json.loads(value), (*here, json))
        elif isinstance(value, (dict, list)):
            yield from places(value, here)


def put(node: Any, path: tuple[Any, ...], value: Any) -> None:
    key, *rest = path
    if rest[:1] == [json]:
        inner = json.loads(node[key])
        put(inner, tuple(rest[1:]), value)
        node[key] = json.dumps(inner)
    elif rest:
        put(node[key], tuple(rest), value)
    elif value is ...:
        del node[key]
    else:
        node[key] = value


def fields() -> list[tuple[str, str, int, tuple[Any, ...]]]:
    """Every field of every action of the tables, each once: table, commit, line, place."""
    found = {}
    for kind in ("v1", "own"):
        with tempfile.TemporaryDirectory() as scratch:
            for file in damage.json_files(copy_of(kind, Path(scratch) / "table")):
                if file.suffix == ".json" and len(file.stem) == 20:
                    for number, line in enumerate(damage.read_lines(file)):
                        for place in places(line):
                            names = tuple(key for key in place if isinstance(key, str))
                            if len(names) < 6:
                                found.setdefault((kind, names), (kind, file.name, number, place))
    return list(found.values())


@pytest.mark.parametrize("part", range(60 if FULL else 2 if QUICK else 12))
def test_every_field_of_every_action_with_hostile_values(
    part: int, table: Callable[[str], Path], tmp_path: Path
) -> None:
    random = Random(part)
    every = [(*field, value) for field in fields() for value in HOSTILE]
    for number, (kind, name, line, place, value) in enumerate(random.sample(every, 8)):
        path = copy_of(kind, tmp_path / f"table {number}")
        for file in damage.files_below(path / "_delta_log", "*checkpoint*", "*.crc", "*.compacted.json"):
            file.unlink()
        lines = damage.read_lines(path / "_delta_log" / name)
        put(lines[line], place, value)
        damage.write_lines(path / "_delta_log" / name, lines)
        attempt_all(path, some_commands(random)[: 20 if FULL else 2])


# --- damage that does not change what a table means


def _numbers_of_32_bits(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_int64(kind) else kind


def _long_texts(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(kind) else kind


def _dictionaries(kind: pa.DataType) -> pa.DataType:
    return pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(kind) else kind


def _retyped(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_retyped(field.type, change)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_retyped(kind.key_type, change), _retyped(kind.item_type, change))
    return change(kind)


@pytest.mark.parametrize("change", [_numbers_of_32_bits, _long_texts, _dictionaries])
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_a_checkpoint_in_other_types_of_the_same_meaning_is_read(
    kind: str, change: Callable[[pa.DataType], pa.DataType], table: Callable[[str], Path]
) -> None:
    path = table(kind)
    before = rows_of(path)
    for file in (path / "_delta_log").glob("0000000000000000000[0-2].json"):
        file.unlink()  # so that nothing can be read in place of the checkpoint
    for file in damage.files_below(path / "_delta_log", "*.parquet"):
        old = pq.read_table(file)
        kinds = [field.with_type(_retyped(field.type, change)) for field in old.schema]
        if change is _numbers_of_32_bits:
            kinds = [
                field.with_type(_except_times(field.type, old.schema.field(field.name).type))
                for field in kinds
            ]
        rows = old.to_pylist(maps_as_pydicts=None)
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), file)
    assert rows_of(path) == before
    for name in (
        "scan of a filter",
        "checkpoint",
        "optimize",
        "vacuum, dry",
        "fsck",
        "deep clone",
    ):
        assert attempt(name, path).error is None


def _except_times(kind: pa.DataType, old: pa.DataType) -> pa.DataType:
    """Times take 64 bits."""
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([f if "ime" not in f.name else old.field(f.name) for f in kind])


@pytest.mark.parametrize("seed", range(_SEEDS * 3))
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_whatever_the_hint_says_the_rows_are_right(
    kind: str, seed: int, table: Callable[[str], Path]
) -> None:
    random = Random(f"{kind} {seed}")
    path = table(kind)
    before = rows_of(path)
    hint = path / "_delta_log" / "_last_checkpoint"
    content = json.loads(hint.read_text())
    damage.mutate(content, random)
    content.setdefault("note", random.choice(damage.WORDS))
    if seed % 2:
        content.pop("checksum", None)
    hint.write_text(json.dumps(content))
    assert rows_of(path) == before
    hint.write_bytes(os.urandom(40))
    assert rows_of(path) == before


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_unknown_fields_and_another_order_change_nothing(kind: str, table: Callable[[str], Path]) -> None:
    path = table(kind)
    before = rows_of(path)
    for file in damage.json_files(path):
        if file.suffix == ".json":
            lines = damage.read_lines(file)
            for line in lines:
                for body in line.values():
                    body["fromTheFuture"] = {"deep": ["x", {"y": None}]}
            reordered = [
                {name: dict(reversed(body.items())) for name, body in line.items()} for line in lines
            ]
            damage.write_lines(file, reordered)
    assert rows_of(path) == before
    assert attempt("checkpoint", path).error is None
    assert rows_of(path) == before
