"""What the commits after a version do to the files of a table, as far as Iceberg has to follow them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.log.file_actions import canonical_path
from delta_ds.kernel.log.filenames import commit_path
from delta_ds.kernel.log.json_actions import iterate_bodies
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field

# With more, all files are described anew.
MAX_COMMITS = 100


@dataclass(slots=True)
class LogChanges:
    """Files that came and went.

    Attributes
    ----------
    added
        The `add` actions of files that may be new, by canonical path.
    removed
        Canonical paths of files that are live no more.
    passing
        Canonical paths of files that came and went; whether they were there before is not known.
    may_repeat
        Whether some of `added` may have been live before: they were committed again with other statistics or tags.
    operations
        Of the commits, for the summary of the snapshot.
    """

    added: dict[str, AddFile] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)
    may_repeat: bool = False
    operations: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.passing)


def changes_between(storage: Storage, after: int, until: int) -> LogChanges | None:
    """The changes of the commits after one version until another one; None where they are too many or gone.

    Raises
    ------
    StorageError
        The storage refused.
    CorruptLogFileError
        A commit is damaged.
    """
    if until - after > MAX_COMMITS:
        return None
    found = LogChanges()
    for version in range(after + 1, until + 1):
        try:
            data = storage.read_whole(commit_path(version))
        except FileNotFoundError:
            return None
        where = f"{commit_path(version)} of {storage.url}"
        for name, body in iterate_bodies(data, where, "add", "remove", "commitInfo"):
            _follow(found, name, body, storage)
    return found


def _follow(found: LogChanges, name: str, body: Mapping[str, Any], storage: Storage) -> None:
    if name == "commitInfo":
        found.operations.append(str(body.get("operation")))
        return
    path = canonical_path(body["path"], storage)
    if name == "add":
        found.may_repeat |= not body.get("dataChange", True) or path in found.removed | found.passing
        found.removed.discard(path)
        found.passing.discard(path)
        found.added[path] = cast("AddFile", body)
    else:
        came = found.added.pop(path, None)
        (found.removed if came is None else found.passing).add(path)
