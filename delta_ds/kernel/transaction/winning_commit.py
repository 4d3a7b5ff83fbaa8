"""`WinningCommit`: the part of another commit that conflict checks look at.

Source: conflict-matrix sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import CorruptLogFileError, DeltaError, VersionsNotContiguousError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.format.actions import AddFile, DomainMetadata, RemoveFile
from delta_ds.kernel.format.operations import ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL, operation_named
from delta_ds.kernel.log.commit import Commit, parse_commits, read_in_batches
from delta_ds.kernel.log.file_actions import actions_schema
from delta_ds.kernel.log.json_actions import iterate_bodies
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.log.segment import first_missing, list_log
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import canonical_path, canonical_paths
from delta_ds.kernel.transaction.pending import ROW_TRACKING_DOMAIN, Pending
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

Conflict = TypeVar("Conflict", bound=DeltaError)


@dataclass(frozen=True)
class WinningCommit(Commit):
    """One commit on disk that the transaction has not read.

    Attributes
    ----------
    partition_columns
        Physical names of the partition columns of the table as it was read.
    """

    partition_columns: tuple[str, ...]

    @property
    def operation(self) -> str | None:
        name = self.info.get("operation")
        return name if isinstance(name, str) else None

    @property
    def is_blind_append(self) -> bool:
        """`isBlindAppend` of its `commitInfo`; false where it is missing."""
        return self.info.get("isBlindAppend") is True

    @property
    def checked_for_appends(self) -> bool:
        """Whether the files that it adds may hold rows for others; see `Operation`."""
        return operation_named(self.operation or "").checked_for_appends

    @property
    def is_backfill(self) -> bool:
        return self.operation == ROW_TRACKING_BACKFILL.name

    @property
    def is_unbackfill(self) -> bool:
        return self.operation == ROW_TRACKING_UNBACKFILL.name

    @property
    def timestamp(self) -> int:
        """`inCommitTimestamp` of its `commitInfo`, else the time of its file: ms since 1970."""
        stamped = self.info.get("inCommitTimestamp")
        return stamped if type(stamped) is int else self.file.status.modified_ms

    def has_tag(self, key: str) -> bool:
        """Whether a tag of its `commitInfo` is `true`."""
        tags = self.info.get("tags")
        return isinstance(tags, Mapping) and str(tags.get(key)).lower() == "true"

    @cached_property
    def app_ids(self) -> set[str]:
        """The applications whose transactions it recorded."""
        return {str(body.get("appId")) for body in self.bodies("txn")}

    @cached_property
    def domains(self) -> dict[str, DomainMetadata]:
        """Its `domainMetadata` by domain, removals included."""
        return {str(body.get("domain")): body for body in self.bodies("domainMetadata")}

    @property
    def high_water_mark(self) -> int | None:
        """The highest row id in use after it; None where it did not write that."""
        body = self.domains.get(ROW_TRACKING_DOMAIN)
        return None if body is None else parse_mark(str(body.get("configuration") or ""), self.where)

    @cached_property
    def _files(self) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(parse_commits([self], actions_schema(self.partition_columns)))

    @cached_property
    def adds(self) -> LiveFiles:
        """The files it added, known paths that it adds anew included."""
        import pyarrow as pa
        import pyarrow.compute as pc

        add = self._files["add"].filter(pc.is_valid(self._files["add"]))
        fields = [field for field in add.type if field.name != "stats"]
        table = pa.table({field.name: field_of(add, field.name) for field in fields})
        row = pa.chunked_array([pa.nulls(len(add), pa.int64())])
        return LiveFiles(self.storage, table, pc.struct_field(add, "stats"), row, None)

    @cached_property
    def removed_paths(self) -> list[str]:
        """The canonical paths of its `remove` actions, in order."""
        paths: list[str] = canonical_paths(self._removed, self.storage).to_pylist()
        return paths

    @property
    def removed_spellings(self) -> list[str]:
        """The paths of its `remove` actions as the log spells them."""
        spellings: list[str] = self._removed.to_pylist()
        return spellings

    @cached_property
    def _removed(self) -> pa.ChunkedArray:
        import pyarrow.compute as pc

        return pc.drop_null(pc.struct_field(self._files["remove"], "path"))

    def file_actions(self) -> Iterator[tuple[str, str, AddFile | RemoveFile]]:
        """Its `add` and `remove` actions, one by one: name, canonical path and body."""
        for name, body in iterate_bodies(self.data, self.where, "add", "remove"):
            yield name, canonical_path(body["path"], self.storage), cast("AddFile | RemoveFile", body)


def parse_mark(configuration: str, where: str) -> int | None:
    """The highest row id of the row tracking domain's configuration; None where it holds none.

    Raises
    ------
    CorruptLogFileError
        It is no JSON object with a number: going on could give out row ids twice.
    """
    try:
        mark = parse_json(configuration)["rowIdHighWaterMark"]
        return int(mark)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise CorruptLogFileError(
            f"the domain {ROW_TRACKING_DOMAIN} in {where} has no rowIdHighWaterMark: {configuration!r:.200}. "
            "Nothing was written; row ids can be given out only above the highest one in use"
        ) from error


def read_winning_commits(
    storage: Storage, first: int, partition_columns: Sequence[str]
) -> Iterator[WinningCommit]:
    """Every commit from a version on, ascending, a few at a time in memory.

    Raises
    ------
    LogError
        The first version cannot be listed although it is taken, or the log has a gap after it: nobody knows
        what the missing commits hold.
    """
    commits = list_log(storage, first).commits
    versions = sorted(version for version in commits if version >= first)
    missing = first_missing(commits, first, versions[-1] if versions else first)
    if missing is not None:
        raise VersionsNotContiguousError(
            f"version {missing} of {storage.url} is missing although it was committed, so this commit cannot be "
            "checked for conflicts; nothing was written. Restore the missing commit file"
        )
    columns = tuple(partition_columns)
    for batch in read_in_batches(storage, [commits[version] for version in versions]):
        for commit in batch:
            if not commit.is_whole:
                raise CorruptLogFileError(
                    f"{commit.where} came before this commit and is empty or cut off, so it cannot be checked for "
                    "conflicts; nothing was written. Restore it from a backup"
                )
            yield WinningCommit(storage, commit.file, commit.data, columns)


# --- errors of transactions that contradict it


def conflict(
    condition: ErrorCondition[Conflict],
    pending: Pending,
    winning_commit: WinningCommit,
    hint: Mapping[str, str] | None = None,
    /,
    **values: Any,
) -> Conflict:
    """The error of a transaction that cannot follow a commit.

    Parameters
    ----------
    hint
        Parameters that not every error of the condition has.
    values
        What the text of the condition says of this conflict; who met where is added here.
    """
    return condition(
        hint,
        version=winning_commit.version,
        operation=winning_commit.operation,
        winner=winning_commit.operation or "TRANSACTION",
        loser=pending.operation,
        read="a new table" if pending.snapshot is None else f"read version {pending.snapshot.version}",
        table=pending.table,
        commitInfo=dict(winning_commit.info),
        **values,
    )


def file_conflict(
    condition: ErrorCondition[Conflict],
    pending: Pending,
    winning_commit: WinningCommit,
    path: str,
    partition_values: Mapping[str, str | None] | None,
    **values: Any,
) -> Conflict:
    """The error of a conflict about one file; it names the partition of the file where that is known."""
    partition = _partition_text(pending, partition_values)
    place, form, hint = f"file {path!r}", "WITHOUT_HINT", {}
    if partition is not None:
        place, form = f"in the partition {partition}: {place}", "WITH_PARTITION_HINT"
        hint = {"partitionValues": partition}
    narrowed = condition.narrowed(form)
    return conflict(narrowed, pending, winning_commit, hint, file=path, place=place, **values)


def _partition_text(pending: Pending, values: Mapping[str, str | None] | None) -> str | None:
    if pending.snapshot is None or not values:
        return None
    names = zip(pending.snapshot.partition_columns, pending.snapshot.physical_partition_columns, strict=True)
    texts = [f"{logical}={_or_null(values.get(physical))}" for logical, physical in names]
    return f"[{', '.join(texts)}]" if texts else None


def _or_null(value: str | None) -> str:
    return "null" if value is None else value
