"""Shallow CLONE of a folder of Parquet files: a new table that refers to them by their absolute paths.

Source: as `clone`; delta-spark, `CloneParquetSource`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.commands import CLONE_PARQUET_WITHOUT_VERSIONS
from delta_ds.kernel.actions import AddFile
from delta_ds.kernel.commands.clone import (
    CloneResult,
    address_text,
    address_uri,
    check_reachable,
    check_target,
    clone_metrics,
)
from delta_ds.kernel.commands.convert_to_delta import plan_conversion, source_files
from delta_ds.kernel.operations import CLONE

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog
    from delta_ds.kernel.schema.types import StructType

_NO_VERSION = -1


def shallow_clone_parquet(
    source: DeltaLog,
    target: DeltaLog,
    partition_schema: StructType | None = None,
    *,
    version: object = None,
    timestamp: object = None,
    timezone: str = "UTC",
    replace_existing: bool = False,
    properties: Mapping[str, str] | None = None,
) -> CloneResult:
    """Make a table at another place over the Parquet files of a folder.

    Parameters
    ----------
    source, target
        The folder, and where its clone shall be.
    partition_schema
        See `convert_to_delta`.
    version, timestamp
        Refused: a folder has no versions.
    timezone
        The session time zone: that of timestamps in the names of folders.
    replace_existing, properties
        See `shallow_clone`.

    Raises
    ------
    UnsupportedOperationError
        A version is asked for, or the table at the target has files.
    DeltaError
        As `convert_to_delta` of the folder; see `shallow_clone` for the target.
    """
    if version is not None or timestamp is not None:
        raise CLONE_PARQUET_WITHOUT_VERSIONS(source=source.storage.url)
    check_reachable(source.storage.address, target.storage)
    txn = target.start_transaction(create=True)
    check_target(txn, replace_existing)
    files = source_files(source.storage)
    conversion = plan_conversion(source.storage, files, partition_schema, timezone, properties)
    root = address_uri(source.storage.address)
    adds: list[AddFile] = [
        {**add, "path": f"{root}/{add['path']}"} for add in conversion.adds(source.storage, files)
    ]
    txn.read_whole_table()
    conversion.definition.put_into(txn)
    txn.add_all(adds)
    result = CloneResult(sum(add["size"] for add in adds), len(adds), 0, 0, 0, 0, _NO_VERSION)
    where = address_text(source.storage.address)
    parameters = {"source": f"parquet.`{where}`", "sourceVersion": _NO_VERSION}
    txn.commit(CLONE, parameters, clone_metrics(result))
    return result
