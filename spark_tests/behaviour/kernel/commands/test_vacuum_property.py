"""Against a model: what versions within the retention refer to stays, all else that is older goes."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.commands.vacuum.command import FindNeeded
from delta_ds.spark.engines.large_tables import needed_in_parts
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.vacuum_tables import (
    NOW,
    add,
    age,
    cdc,
    commit,
    files,
    new_table,
    put,
    remove,
    texts_of,
)
from spark_tests.full_form import examples

FEATURES = {"reader_features": ["deletionVectors"], "writer_features": ["deletionVectors"]}
FOLDERS = ("", "p=a%20b/", "p=1/", "_change_data/", "x y/")


@dataclass(frozen=True)
class Step:
    """One commit, or a file that is never committed.

    `gap` is the hours since the step before, `staged` those that new files are older than their commit, `skew`
    those by which the time of a removal is behind (None: it has none).
    """

    kind: str
    gap: float
    folder: str
    which: int
    staged: float
    skew: float | None


STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(
            ["add", "remove", "vector", "replace", "cdc", "orphan", "restore", "checkpoint"]
        ),
        gap=st.sampled_from([0, 1, 2, 5, 20]),
        folder=st.sampled_from(FOLDERS),
        which=st.integers(0, 100),
        staged=st.sampled_from([0, 0, 0.5, 10]),
        skew=st.sampled_from([0, 0, 0, 0.5, 10, None]),
    ),
    min_size=1,
    max_size=14,
)


@dataclass
class Model:
    """A table and what each of its versions refers to.

    Attributes
    ----------
    live
        By path of a live data file the descriptor of its vector and the vector's file, or None.
    removed
        Data files that were live once, with what they had when they were removed.
    versions
        Hours before `NOW` at which each version was committed, the files that it needs, and its change file.
    ages
        Of every file there is, hours.
    """

    table: TableBuilder
    live: dict[str, Any] = field(default_factory=dict)
    removed: dict[str, Any] = field(default_factory=dict)
    versions: list[tuple[float, set[str], str | None]] = field(default_factory=list)
    ages: dict[str, float] = field(default_factory=dict)

    def file(self, path: str, hours: float) -> str:
        self.ages[path] = hours
        return put(self.table.path, path, hours)

    def vector(self, hours: float) -> tuple[dict[str, Any], str]:
        before = set(self.table.path.glob("deletion_vector_*"))
        descriptor = self.table.deletion_vector([1], "p" if len(before) % 2 else "u")
        (file,) = set(self.table.path.glob("deletion_vector_*")) - before
        age(file, hours)
        self.ages[file.name] = hours
        return descriptor, file.name

    def committed(self, hours: float, *actions: Any, changes: str | None = None) -> None:
        commit(self.table, hours, *actions)
        needed = {*self.live, *(vector[1] for vector in self.live.values() if vector)}
        self.versions.append((hours, needed, changes))

    def needed(self, cutoff: float) -> set[str]:
        """What the versions refer to that were the newest at some moment not before the horizon.

        Of change files those of versions that were committed since.
        """
        found: set[str] = set()
        for number, (hours, paths, changes) in enumerate(self.versions):
            if changes is not None and hours <= cutoff:
                found.add(changes)
            until = self.versions[number + 1][0] if number + 1 < len(self.versions) else 0
            if until <= cutoff:
                found |= paths
        return found


def _of(vector: Any) -> dict[str, Any]:
    return {"deletionVector": vector[0]} if vector else {}


def play(model: Model, steps: list[Step], start: float) -> None:
    hours = start
    for number, step in enumerate(steps):
        hours = max(hours - step.gap, 0.001 * (len(steps) - number))
        behind = None if step.skew is None else hours + step.skew
        candidates = model.removed if step.kind == "restore" else model.live
        chosen = sorted(candidates)[step.which % len(candidates)] if candidates else None
        if step.kind == "add":
            path = model.file(f"{step.folder}{number}", hours + step.staged)
            model.live[path] = None
            model.committed(hours, add(path))
        elif step.kind == "orphan":
            model.file(f"{step.folder}{number}", hours + step.staged)
        elif step.kind == "cdc":
            path = model.file(f"_change_data/{number}", hours + step.staged)
            model.committed(hours, cdc(path), changes=path)
        elif step.kind == "checkpoint" and model.table.version >= 0:
            DeltaLog(model.table.path).checkpoint()
        elif chosen is not None and step.kind == "restore":
            model.live[chosen] = model.removed.pop(chosen)
            model.committed(hours, add(chosen, **_of(model.live[chosen])))
        elif chosen is not None and step.kind in ("remove", "vector", "replace"):
            old = model.live.pop(chosen)
            actions = [remove(chosen, behind, **_of(old))]
            if step.kind == "remove":
                model.removed[chosen] = old
            elif step.kind == "vector":
                model.live[chosen] = model.vector(hours + step.staged)
                actions.append(add(chosen, **_of(model.live[chosen])))
            else:
                path = model.file(f"{step.folder}{number}", hours + step.staged)
                model.live[path] = None
                actions.append(add(path))
            model.committed(hours, *actions)


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=STEPS,
    retention=st.sampled_from([0, 1, 3, 8, 30]),
    again=st.sampled_from([0, 2, 10]),
    find_needed=st.sampled_from([None, partial(needed_in_parts, map=map)]),
)
def test_files_of_versions_within_the_retention_stay_and_all_others_go(
    steps: list[Step], retention: float, again: float, find_needed: FindNeeded | None
) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        model = Model(new_table(root, **FEATURES))
        model.versions.append((5000, set(), None))
        play(model, steps, 60)
        for hours in (retention, min(again, retention)):
            needed, there = model.needed(hours), files(root)
            log = DeltaLog(root)
            how: dict[str, Any] = {"retention_check": False, "record": False, "find_needed": find_needed}
            result = vacuum(log, hours, now_ms=NOW, **how)
            gone = texts_of(result.paths)
            assert files(root) == there - gone
            assert not gone & needed, "a file that a version within the retention refers to"
            assert all(model.ages[path] > hours for path in gone), "a file younger than the horizon"
            # Removals are dated by their writer, never later than they were committed.
            assert gone == {path for path in there - needed if model.ages[path] > hours}
    finally:
        shutil.rmtree(root)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, retentions=st.lists(st.sampled_from([0, 1, 3, 8, 30]), min_size=1, max_size=3))
def test_lite_never_deletes_what_a_full_one_would_not(steps: list[Step], retentions: list[float]) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        model = Model(new_table(root, **FEATURES))
        model.versions.append((5000, set(), None))
        play(model, steps, 60)
        for hours in sorted(retentions, reverse=True):
            log = DeltaLog(root)
            how: dict[str, Any] = {"now_ms": NOW, "retention_check": False, "record": False}
            full = texts_of(vacuum(log, hours, dry_run=True, **how).paths)
            lite = texts_of(vacuum(log, hours, mode="lite", **how).paths)
            assert not lite & model.needed(hours)
            assert {path for path in lite if path in model.ages} & files(root) == set()
            assert lite <= full | (set(model.ages) - files(root))
    finally:
        shutil.rmtree(root)
