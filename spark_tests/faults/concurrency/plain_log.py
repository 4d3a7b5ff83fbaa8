"""The log as plain JSON and Parquet, read without the kernel: what tests hold the kernel's answers against."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from delta_ds.kernel.log.filenames import checksum
from delta_ds.kernel.storage.filesystem import Storage

Body = Mapping[str, Any]

_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKSUM = re.compile(r"_delta_log/(\d{20})\.crc")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\.(.*\.)?parquet")
_PART = re.compile(r"\d{10}\.(\d{10})\.")


@dataclass(frozen=True)
class Commit:
    """One commit file."""

    version: int
    actions: list[dict[str, dict[str, Any]]]

    def bodies(self, name: str) -> list[dict[str, Any]]:
        return [action[name] for action in self.actions if name in action]

    @property
    def info(self) -> dict[str, Any]:
        (found,) = self.bodies("commitInfo")
        return found

    @property
    def adds(self) -> dict[str, dict[str, Any]]:
        return {body["path"]: body for body in self.bodies("add")}

    @property
    def removes(self) -> dict[str, dict[str, Any]]:
        return {body["path"]: body for body in self.bodies("remove")}


class PlainLog:
    """The log of a table whose files have no deletion vectors, as it is on its storage now.

    Parameters
    ----------
    storage
        The table's.
    first
        The oldest commit that is expected; a log that was cleaned up does not start at 0.
    """

    def __init__(self, storage: Storage, first: int = 0) -> None:
        self.storage = storage
        self.first = first
        self.names = [status.path for status in storage.list_from("_delta_log")]

    def _matching(self, pattern: re.Pattern[str]) -> dict[int, str]:
        found = [(pattern.fullmatch(name), name) for name in self.names]
        return {int(match[1]): name for match, name in found if match}

    @cached_property
    def commits(self) -> list[Commit]:
        """Every commit, whose versions have no gap, and each of which is whole."""
        found = self._matching(_COMMIT)
        assert list(found) == list(range(self.first, self.first + len(found)))
        commits = []
        for (version, name), data in zip(
            found.items(), self.storage.read_many(list(found.values())), strict=True
        ):
            assert data.endswith(b"}\n"), f"{name} is torn"
            commits.append(Commit(version, [json.loads(line) for line in data.splitlines()]))
        return commits

    @cached_property
    def live(self) -> list[dict[str, dict[str, Any]]]:
        """The live files of each version, by path."""
        files: dict[str, dict[str, Any]] = {}
        versions = []
        for commit in self.commits:
            assert not commit.removes.keys() - files.keys(), f"{commit.version} removes what is not there"
            assert not (commit.adds.keys() & files.keys()), f"{commit.version} adds what is there"
            files = {path: body for path, body in files.items() if path not in commit.removes} | commit.adds
            versions.append(files)
        return versions

    def read(self, path: str) -> list[dict[str, Any]]:
        """The rows of a data file, without its partition columns."""
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(self.storage.read(unquote(path)))).to_pylist()
        return rows

    def current(self, name: str, version: int, key: str | None = None) -> dict[Any, Body]:
        """The newest body of each action of a kind at a version, by a field of it (None: there is only one)."""
        found: dict[Any, Body] = {}
        for commit in self.commits[: version + 1]:
            found.update({body[key] if key else None: body for body in commit.bodies(name)})
        return found

    def check_checksums(self) -> list[int]:
        """Hold every `.crc` against the commits; the versions that have one."""
        found = self._matching(_CHECKSUM)
        for version, name in found.items():
            body = json.loads(self.storage.read(name))
            files = self.live[version].values()
            (protocol,) = self.current("protocol", version).values()
            (metadata,) = self.current("metaData", version).values()
            assert body["numFiles"] == len(files), name
            assert body["tableSizeBytes"] == sum(file["size"] for file in files), name
            assert body["txnId"] == self.commits[version].info["txnId"], name
            assert (body["protocol"], body["metadata"]) == (protocol, metadata), name
            for field, action, key in (
                ("setTransactions", "txn", "appId"), ("domainMetadata", "domainMetadata", "domain"),
            ):  # fmt: skip
                if field in body:
                    assert {b[key]: b for b in body[field]} == self.current(action, version, key), name
        return list(found)

    def checkpoints(self) -> dict[int, list[list[str]]]:
        """The complete checkpoints of each version that has one, each as its files without the sidecars."""
        found: dict[tuple[int, str], list[str]] = {}
        for name in self.names:
            match = _CHECKPOINT.fullmatch(name)
            if match:
                # Of several parts the number is not part of the name that they share.
                found.setdefault((int(match[1]), _PART.sub(r"\1.", match[2] or "")), []).append(name)
        out: dict[int, list[list[str]]] = {}
        for (version, _), names in found.items():
            part = _PART.search(names[0])
            if part is None or len(names) == int(part[1]):
                out.setdefault(version, []).append(names)
        return out

    def check_checkpoints(self) -> list[int]:
        """Hold every checkpoint against the commits; the versions that have one."""
        found = self.checkpoints()
        for version, checkpoints in found.items():
            for names in checkpoints:
                self._check_checkpoint(version, names)
        return sorted(found)

    def _check_checkpoint(self, version: int, names: list[str]) -> None:
        actions = self._actions(names)
        adds = [action["add"]["path"] for action in actions if action.get("add")]
        assert sorted(adds) == sorted(self.live[version]), names
        for name in ("protocol", "metaData"):
            (body,) = [action[name] for action in actions if action.get(name)]
            (wanted,) = self.current(name, version).values()
            assert wanted.items() <= _as_json(body).items(), names

    def _actions(self, names: list[str]) -> list[dict[str, Any]]:
        """All actions of some files, with those in their sidecars."""
        out: list[dict[str, Any]] = []
        for name in names:
            out += pq.read_table(io.BytesIO(self.storage.read(name))).to_pylist()
        sidecars = [f"_delta_log/_sidecars/{a['sidecar']['path']}" for a in out if a.get("sidecar")]
        return out + (self._actions(sidecars) if sidecars else [])

    def check_hint(self) -> int:
        """Hold `_last_checkpoint` against its checksum and the checkpoints; the version it names."""
        hint = json.loads(self.storage.read("_delta_log/_last_checkpoint"))
        assert hint["checksum"] == checksum(hint)
        assert hint["version"] in self.checkpoints()
        return int(hint["version"])


def _as_json(body: Body) -> dict[str, Any]:
    """The body of an action as Parquet has it, in which maps are pairs."""
    maps = ("configuration", "options")
    out = {name: dict(value) if name in maps else value for name, value in body.items()}
    if "format" in out:
        out["format"] = _as_json(out["format"])
    return out
