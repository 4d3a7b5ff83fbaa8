"""Random histories of a table, what they come to, and what a checkpoint holds: for the checkpoint tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import strategies as st

from delta_ds.kernel.format.schema.types import LONG, STRING, StructField, StructType
from delta_ds.kernel.log.checkpoint_write.writer import CheckpointInfo
from delta_ds.kernel.log.segment import find_segment
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from delta_ds.testing import Action, TableBuilder

SCHEMA = StructType((StructField("id", LONG), StructField("s", STRING), StructField("p", STRING)))
NOW_MS = 1_800_000_000_000
WEEK_MS = 7 * 86_400_000

_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
_numbers = st.integers(0, 6)


def _vector(number: int) -> dict[str, Any] | None:
    if number == 0:
        return None
    offset = {"offset": number} if number % 2 else {}
    return {
        "storageType": "u" if number % 2 else "i", "pathOrInlineDv": f"dv{number}", **offset, "sizeInBytes": 7,
        "cardinality": number,
    }  # fmt: skip


def statistics_of(number: int) -> dict[str, Any]:
    low, high = {"id": number, "s": 'a"\\\n'}, {"id": number + 9, "s": f"ü{number}"}
    return {"numRecords": 10, "minValues": low, "maxValues": high, "nullCount": {"id": 0, "s": number}}


@st.composite
def adds(draw: st.DrawFn) -> Action:
    """An `add` of one of few paths with one of few vectors, all fields at times there and at times not."""
    number = draw(_numbers)
    add: dict[str, Any] = {
        "path": f"f{number}%20x.parquet", "partitionValues": {"p": draw(st.none() | _texts)},
        "size": draw(st.integers(1, 99)), "modificationTime": draw(st.integers(0, 9)),
        "dataChange": draw(st.booleans()),
    }  # fmt: skip
    optional: dict[str, st.SearchStrategy[Any]] = {
        "tags": st.dictionaries(_texts.filter(bool), _texts, max_size=2),
        "deletionVector": st.integers(0, 3).map(_vector),
        "baseRowId": st.integers(0, 9), "defaultRowCommitVersion": st.integers(0, 9),
        "clusteringProvider": st.just("liquid"), "stats": st.just(json.dumps(statistics_of(number))),
    }  # fmt: skip
    chosen = {name: draw(values) for name, values in optional.items() if draw(st.booleans())}
    return {"add": {**add, **{name: value for name, value in chosen.items() if value is not None}}}


@st.composite
def removes(draw: st.DrawFn) -> Action:
    """A `remove`, at times of what never was there, at times long expired."""
    remove: dict[str, Any] = {"path": f"f{draw(_numbers)}%20x.parquet", "dataChange": True}
    optional: dict[str, st.SearchStrategy[Any]] = {
        "deletionTimestamp": st.sampled_from([NOW_MS - 1, NOW_MS - WEEK_MS, NOW_MS - WEEK_MS + 1, 5]),
        "extendedFileMetadata": st.booleans(), "partitionValues": st.fixed_dictionaries({"p": st.none() | _texts}),
        "size": st.integers(1, 99), "deletionVector": st.integers(0, 3).map(_vector),
        "baseRowId": st.integers(0, 9), "defaultRowCommitVersion": st.integers(0, 9),
    }  # fmt: skip
    chosen = {name: draw(values) for name, values in optional.items() if draw(st.booleans())}
    return {"remove": {**remove, **{name: value for name, value in chosen.items() if value is not None}}}


_txns = st.builds(
    lambda app, version, seen: {
        "txn": {"appId": app, "version": version, **({} if seen is None else {"lastUpdated": seen})}
    },
    st.sampled_from("abc"),
    st.integers(0, 9),
    st.none() | st.sampled_from([NOW_MS - 1, 7]),
)
_domains = st.builds(
    lambda name, text, removed: {
        "domainMetadata": {"domain": name, "configuration": text, "removed": removed}
    },
    st.sampled_from(["one", "delta.two"]),
    _texts,
    st.booleans(),
)


def _distinct(actions: Iterable[Action]) -> list[Action]:
    return list({key_of(action): action for action in actions}.values())


commits = st.lists(adds() | removes() | _txns | _domains, min_size=1, max_size=6).map(_distinct)
histories = st.lists(commits, min_size=1, max_size=6)


def key_of(action: Action) -> tuple[Any, ...]:
    """What a newer action must share to take an older one's place."""
    kind, body = next(iter(action.items()))
    if kind in ("add", "remove"):
        vector = body.get("deletionVector") or {}
        return ("file", body["path"], vector.get("pathOrInlineDv"), vector.get("offset"))
    return (kind, body.get("appId"), body.get("domain"))


def reconciled(actions: Iterable[Action], *, txns_expire: bool = False) -> dict[tuple[Any, ...], Action]:
    """What a checkpoint of some actions, oldest first, must hold at `NOW_MS`."""
    latest = {key_of(action): action for action in actions if "commitInfo" not in action}
    return {key: _plain(action) for key, action in latest.items() if _is_kept(action, txns_expire)}


def _is_kept(action: Action, txns_expire: bool) -> bool:
    kind, body = next(iter(action.items()))
    if kind == "remove":
        return bool(body.get("deletionTimestamp", 0) > NOW_MS - WEEK_MS)
    if kind == "txn" and txns_expire:
        return bool(body.get("lastUpdated", 0) > NOW_MS - WEEK_MS)
    return not body.get("removed")


def _plain(action: Mapping[str, Mapping[str, Any]]) -> Action:
    kind, body = next(iter(action.items()))
    out = {name: value for name, value in body.items() if value is not None and value != {}}
    if kind in ("add", "remove"):
        out["dataChange"] = False
    if kind == "add" and "stats" in out:
        out["stats"] = json.loads(out["stats"])
    return {kind: out}


def stored(table: Path, info: CheckpointInfo) -> tuple[dict[tuple[Any, ...], Action], list[Action]]:
    """The actions in the files of a checkpoint, without typed columns; those of V2 checkpoints apart."""
    actions, own = [], []
    for file in info.files:
        for row in pq.read_table(table / file, partitioning=None).to_pylist():
            ((kind, body),) = [(name, value) for name, value in row.items() if value is not None]
            body = {
                name: _mapped(name, value) for name, value in body.items() if not name.endswith("_parsed")
            }
            if kind == "metaData":
                body["format"] = {"provider": "parquet", "options": {}}
                body["configuration"] = body.get("configuration") or {}
            target = own if kind in ("checkpointMetadata", "sidecar") else actions
            target.append(_plain({kind: body}))
    assert len({key_of(action) for action in actions}) == len(actions)
    return {key_of(action): action for action in actions}, own


def _mapped(name: str, value: Any) -> Any:
    if name in ("partitionValues", "tags", "configuration") and isinstance(value, list):
        return dict(value)
    if name == "deletionVector" and value is not None:
        return {key: item for key, item in value.items() if item is not None}
    return value


def checkpoint(table: TableBuilder) -> CheckpointInfo:
    """Write a checkpoint of the newest version, as of `NOW_MS`."""
    storage = open_storage(table.path)
    return write_checkpoint(storage, find_segment(storage), now_ms=NOW_MS)


def without_metadata(actions: Mapping[tuple[Any, ...], Action]) -> dict[tuple[Any, ...], Action]:
    return {key: action for key, action in actions.items() if key[0] != "metaData"}


def commit_all(table: TableBuilder, history: Sequence[Sequence[Action]]) -> None:
    for actions in history:
        table.commit(*actions)
