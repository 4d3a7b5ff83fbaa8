"""REORG TABLE ... APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)): make a table one that readers of Iceberg read.

Three steps, each of which may be the last one if something fails; run again, it goes on from there. The properties come
first, so that whatever others write from then on complies; then the files from before are written anew; then the
metadata of Iceberg is written with every commit.

Source: delta-spark, `ReorgTableForUpgradeUniformHelper`, `DeltaUpgradeUniformOperation`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from delta_ds.conditions.iceberg import COMPAT_VERSION_NOT_SUPPORTED
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import UPGRADE, OptimizeRequest
from delta_ds.kernel.format.iceberg_compatibility import (
    ICEBERG,
    check_installed,
    enabled_version,
    of_new_table,
    property_of,
    writes_metadata,
)
from delta_ds.kernel.format.operations import UPGRADE_UNIFORM
from delta_ds.kernel.format.properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_DELETION_VECTORS,
    UNIVERSAL_FORMAT_ENABLED_FORMATS,
)
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.kernel.transaction.alter.table_metadata import with_metadata
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

VERSIONS = (1, 2)


def upgrade_uniform(log: TableLog, version: int) -> int:
    """Turn on Iceberg compatibility and UniForm; files that do not comply are written anew in this process.

    Parameters
    ----------
    log
        The table.
    version
        Of Iceberg compatibility: 1 or 2.

    Returns
    -------
    int
        How many files were written anew.

    Raises
    ------
    UnsupportedOperationError
        There is no such version, the table cannot have it, or pyiceberg is missing.
    DeltaConcurrentModificationException
        Another commit got in the way. What was committed until then stays; run it again.
    """
    begin_upgrade(log, version)
    result = optimize(log, OptimizeRequest(kind=UPGRADE))
    finish_upgrade(log)
    return cast("int", result.metrics["numFilesRemoved"])


def begin_upgrade(log: TableLog, version: int) -> None:
    """The first step of `upgrade_uniform`: the properties of the table, where it has others."""
    if version not in VERSIONS:
        raise COMPAT_VERSION_NOT_SUPPORTED(table=log.storage.url, version=version, maxVersion=max(VERSIONS))
    check_installed(log.storage.url)
    txn = log.start_transaction()
    if enabled_version(txn.table_state) == version:
        return
    before = txn.metadata.configuration
    wanted = {property_of(version).name: "true"}
    wanted |= {
        p.name: "false" for p in map(property_of, VERSIONS) if p.name in before and p.name not in wanted
    }
    if COLUMN_MAPPING_MODE.of(before) == "none":
        wanted[COLUMN_MAPPING_MODE.name] = "name"
    wanted[ENABLE_DELETION_VECTORS.name] = "false"
    new = replace(txn.metadata, configuration=of_new_table({**before, **wanted}))
    txn.set_table_state(with_metadata(txn.table_state, new, upgrade=True))
    txn.commit(UPGRADE_UNIFORM, {"properties": json.dumps(wanted, separators=(",", ":"))})


def finish_upgrade(log: TableLog) -> None:
    """The last step of `upgrade_uniform`: the metadata of Iceberg, from now on with every commit."""
    properties = log.open_snapshot().properties
    if not writes_metadata(properties):
        formats = [*UNIVERSAL_FORMAT_ENABLED_FORMATS.of(properties), ICEBERG]
        set_properties(log, {UNIVERSAL_FORMAT_ENABLED_FORMATS.name: ",".join(formats)})
