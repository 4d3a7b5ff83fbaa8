"""`Maintained`: the commands of a `DeltaLog` that maintain a table, or make one of another, in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.transaction.table_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.commands.clone import CloneResult
    from delta_ds.kernel.commands.convert_to_delta import ConvertResult
    from delta_ds.kernel.commands.optimize.command import OptimizeResult
    from delta_ds.kernel.commands.optimize.request import OptimizeRequest
    from delta_ds.kernel.commands.restore import RestoreResult
    from delta_ds.kernel.commands.vacuum.command import VacuumResult
    from delta_ds.kernel.format.schema.types import StructType


@checked
class Maintained(TableLog):
    """Each command is one transaction, whose conflicts it raises; where nothing is due it commits nothing."""

    def optimize(
        self,
        where: str | None = None,
        *,
        full: bool = False,
        min_file_size: int | None = None,
        max_file_size: int | None = None,
        timezone: str = "UTC",
    ) -> OptimizeResult:
        """Join small files into larger ones; of a clustered table, cluster them. The rows stay the same.

        Parameters
        ----------
        where
            A predicate on partition columns: only these partitions.
        full
            Rewrite all files of a clustered table, those that are clustered already as well.
        min_file_size
            In bytes: smaller files are candidates. 1 GiB, or `max_file_size` if that is given.
        max_file_size
            In bytes: what files shall come to; `delta.targetFileSize` of the table, else 1 GiB.
        timezone
            In which the predicate is meant.

        Returns
        -------
        OptimizeResult
            The version, None where there was nothing to do, and delta-spark's metrics.

        Raises
        ------
        UnsupportedOperationError, PredicateError
            `full` of a table that is not clustered; a predicate on other columns.
        DeltaConcurrentModificationException
            Another commit removed or changed a file that was rewritten. Nothing was committed.

        Examples
        --------
        >>> DeltaLog("/data/orders").optimize("country = 'DE'").metrics["numFilesRemoved"]
        2
        """
        from delta_ds.kernel.commands.optimize.request import COMPACT, FULL

        return self._optimized(FULL if full else COMPACT, (), where, min_file_size, max_file_size, timezone)

    def zorder(
        self,
        columns: Sequence[str],
        where: str | None = None,
        *,
        max_file_size: int | None = None,
        timezone: str = "UTC",
    ) -> OptimizeResult:
        """Rewrite files so that rows near each other in these columns lie in the same files.

        Parameters
        ----------
        columns
            As Spark SQL writes them; with statistics, and no partition columns.
        where, max_file_size, timezone
            As for `optimize`.

        Raises
        ------
        UnsupportedOperationError, SchemaError
            A column has no statistics or is a partition column; the table is clustered.
        DeltaError
            As `optimize`.

        Examples
        --------
        >>> DeltaLog("/data/orders").zorder(["amount"]).metrics["zOrderStats"]["strategyName"]
        'all'
        """
        from delta_ds.kernel.commands.optimize.request import ZORDER

        return self._optimized(ZORDER, tuple(columns), where, None, max_file_size, timezone)

    def _optimized(
        self,
        kind: str,
        columns: tuple[str, ...],
        where: str | None,
        min_file_size: int | None,
        max_file_size: int | None,
        timezone: str,
    ) -> OptimizeResult:
        from delta_ds.kernel.commands.optimize.command import optimize
        from delta_ds.kernel.commands.optimize.request import OptimizeRequest

        request = OptimizeRequest(kind, () if where is None else (where,), columns, timezone=timezone)
        return optimize(self, _with_sizes(request, min_file_size, max_file_size))

    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = False,
        mode: Literal["full", "lite"] = "full",
        retention_check: bool = True,
    ) -> VacuumResult:
        """Delete the files below the table's folder that no version within the retention refers to.

        Versions older than the retention can no longer be read. Try it with `dry_run=True`.

        Parameters
        ----------
        retention_hours
            How long what was removed is kept; None: as `delta.deletedFileRetentionDuration` says, by default a week.
        dry_run
            Only tell what would be deleted. Not the default, as it is in deltalake.
        mode
            `full` lists the folder; `lite` finds what was removed by the log, and leaves what was never committed.
        retention_check
            Whether a retention shorter than the table's is refused. With False readers and writers may lose files.

        Returns
        -------
        VacuumResult
            `paths` of the files, `num_files`, `num_bytes`, `folders`.

        Raises
        ------
        InvalidOptionError
            The retention is negative or too short, or the mode is unknown.
        UnsupportedFeatureError, UnsupportedOperationError
            The table has a feature that cannot be written; lite mode, and the log does not reach back far enough.
        StorageError
            Listing or deleting failed.

        Examples
        --------
        >>> DeltaLog("/data/orders").vacuum(dry_run=True).num_files
        0
        """
        from delta_ds.kernel.commands.vacuum.command import vacuum

        return vacuum(self, retention_hours, dry_run=dry_run, mode=mode, retention_check=retention_check)

    def restore(
        self,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        *,
        timezone: str = "UTC",
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
    ) -> RestoreResult | None:
        """Commit the state of an earlier version as the newest.

        Parameters
        ----------
        version, timestamp
            Where to go back to; exactly one. A timestamp is an aware datetime, milliseconds since 1970, or a text.
        timezone
            Of a text that names none.
        ignore_missing_files
            Bring back what is left where files are gone.
        protocol_downgrade_allowed
            Whether the protocol goes back too; by default features stay.

        Returns
        -------
        RestoreResult or None
            Files and bytes that came back and went; None where the table is at this version.

        Raises
        ------
        VersionNotFoundError, TimestampOutOfRangeError
            It cannot be gone back to.
        DataFileError
            Files that are needed again are gone.
        UnsupportedOperationError, AppendOnlyError
            Row ids cannot be brought back; rows of an append-only table would go.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.restore(0).num_removed_files
        2
        >>> log.restore(0) is None, log.snapshot().scan().count()
        (False, 2)
        """
        from delta_ds.kernel.commands.restore import restore

        return restore(
            self,
            version=version,
            timestamp=timestamp,
            timezone=timezone,
            ignore_missing_files=ignore_missing_files,
            protocol_downgrade_allowed=protocol_downgrade_allowed,
        )

    def convert(
        self,
        partition_columns: pa.Schema | StructType | None = None,
        *,
        collect_statistics: bool = True,
        timezone: str = "UTC",
        properties: Mapping[str, Any] | None = None,
        description: str | None = None,
    ) -> ConvertResult | None:
        """Make a table of the Parquet files that lie in the folder, in place.

        Parameters
        ----------
        partition_columns
            Those of folders such as `day=2026-01-31`, with types, in their order; None for a folder without.
        collect_statistics
            Whether the log shall hold statistics of the files.
        timezone
            That of timestamps in the names of folders.
        properties
            Of the table.
        description
            Free text in the table's metadata.

        Returns
        -------
        ConvertResult or None
            None where there is a table already.

        Raises
        ------
        DataFileError
            There is no file, or one that is no Parquet.
        SchemaError
            Columns of files do not go together; folders are not those of the partition columns.

        Examples
        --------
        >>> import os, tempfile, pyarrow as pa, pyarrow.parquet as pq
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_to_dataset(pa.table({"id": [1, 2], "day": ["a", "b"]}), folder, partition_cols=["day"])
        >>> DeltaLog(folder).convert(pa.schema({"day": pa.string()})).num_converted_files
        2
        """
        from delta_ds.kernel.commands.convert_to_delta import convert_to_delta
        from delta_ds.kernel.format.schema.from_arrow import delta_schema

        return convert_to_delta(
            self,
            None if partition_columns is None else delta_schema(partition_columns),
            collect_statistics=collect_statistics,
            timezone=timezone,
            properties=properties,
            description=description,
        )

    def clone(
        self,
        target: str | os.PathLike[str] | TableLog,
        *,
        shallow: bool = False,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        timezone: str = "UTC",
        replace_existing: bool = False,
        properties: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> CloneResult:
        """Make a table at another place with the rows of a version of this one.

        Parameters
        ----------
        target
            Its address, or its `DeltaLog`.
        shallow
            Name the files of this table instead of copying them: they have to stay, on the same filesystem.
        version, timestamp, timezone
            Of this table, as for `restore`; neither: the newest version.
        replace_existing
            Whether the clone may replace a table. A deep clone copies then what is new; a shallow one needs
            a table without files.
        properties
            To set over those of this table.
        storage_options
            Of the target's store, where it is an address.

        Returns
        -------
        CloneResult
            Files and bytes, and the version that it committed.

        Raises
        ------
        TableExistsError
            Something is there, and `replace_existing` is False.
        DataFileError, StorageError
            A file is missing or could not be copied; what was copied is deleted.
        InvalidOptionError, UnsupportedOperationError
            A property cannot be set; a file lies where it may not be copied from.

        Examples
        --------
        >>> import tempfile
        >>> DeltaLog("/data/orders").clone(tempfile.mkdtemp() + "/copy", version=0).num_copied_files
        2
        """
        from delta_ds.kernel.commands.clone import shallow_clone
        from delta_ds.kernel.commands.deep_clone import deep_clone
        from delta_ds.kernel.storage.open import open_storage

        place = target if isinstance(target, TableLog) else TableLog(open_storage(target, storage_options))
        return (shallow_clone if shallow else deep_clone)(
            self,
            place,
            version=version,
            timestamp=timestamp,
            timezone=timezone,
            replace_existing=replace_existing,
            properties=properties,
        )


def _with_sizes(request: OptimizeRequest, minimum: int | None, maximum: int | None) -> OptimizeRequest:
    from delta_ds.exceptions import InvalidOptionError

    for name, size in (("min_file_size", minimum), ("max_file_size", maximum)):
        if size is not None and size <= 0:
            raise InvalidOptionError(
                f"{name} is a number of bytes above 0, not {size}; nothing was rewritten",
                parameters={name: size},
            )
    if maximum is not None:
        request = request.with_settings(max_file_size=maximum, min_file_size=minimum or maximum)
    return request if minimum is None else request.with_settings(min_file_size=minimum)
