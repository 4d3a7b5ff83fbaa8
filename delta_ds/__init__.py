"""Delta Lake for PySpark as a plain Python package.

With Spark: `delta_ds.register(spark)`, then `spark.read.format("pydelta").load(path)`, `df.write.format("pydelta")`
and `DeltaTable.forPath(spark, path)`. Without: `DeltaLog(path).snapshot().scan("country = 'DE'").to_arrow()`.
`help(delta_ds.DeltaTable.merge)` shows each method with an example.
"""

# The public names. They are loaded on first use, so that `import delta_ds` itself costs next to nothing: every Python
# worker that Spark starts pays for it.

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from delta_ds import exceptions

if TYPE_CHECKING:
    from delta_ds._version import __version__ as __version__
    from delta_ds.api.catalog import Catalog as Catalog
    from delta_ds.api.catalog import Moment as Moment
    from delta_ds.api.catalog import catalog as catalog
    from delta_ds.api.change_feed import ChangeFeed as ChangeFeed
    from delta_ds.api.delta_log import DeltaLog as DeltaLog
    from delta_ds.api.snapshot import Scan as Scan
    from delta_ds.api.snapshot import Snapshot as Snapshot
    from delta_ds.api.transaction import Transaction as Transaction
    from delta_ds.deprecations import DeltaDeprecationWarning as DeltaDeprecationWarning
    from delta_ds.exceptions import (
        AppendOnlyError as AppendOnlyError,
    )
    from delta_ds.exceptions import (
        ChangeDataError as ChangeDataError,
    )
    from delta_ds.exceptions import (
        CommitFailedError as CommitFailedError,
    )
    from delta_ds.exceptions import (
        ConcurrentAppendException as ConcurrentAppendException,
    )
    from delta_ds.exceptions import (
        ConcurrentDeleteDeleteException as ConcurrentDeleteDeleteException,
    )
    from delta_ds.exceptions import (
        ConcurrentDeleteReadException as ConcurrentDeleteReadException,
    )
    from delta_ds.exceptions import (
        ConcurrentTransactionException as ConcurrentTransactionException,
    )
    from delta_ds.exceptions import (
        ConcurrentWriteException as ConcurrentWriteException,
    )
    from delta_ds.exceptions import (
        CorruptLogFileError as CorruptLogFileError,
    )
    from delta_ds.exceptions import (
        DataFileError as DataFileError,
    )
    from delta_ds.exceptions import (
        DeltaConcurrentModificationException as DeltaConcurrentModificationException,
    )
    from delta_ds.exceptions import (
        DeltaError as DeltaError,
    )
    from delta_ds.exceptions import (
        InvalidArgumentError as InvalidArgumentError,
    )
    from delta_ds.exceptions import (
        InvalidOptionError as InvalidOptionError,
    )
    from delta_ds.exceptions import (
        InvariantViolationError as InvariantViolationError,
    )
    from delta_ds.exceptions import (
        JobFailedError as JobFailedError,
    )
    from delta_ds.exceptions import (
        LogError as LogError,
    )
    from delta_ds.exceptions import (
        MetadataChangedException as MetadataChangedException,
    )
    from delta_ds.exceptions import (
        NotADeltaTableError as NotADeltaTableError,
    )
    from delta_ds.exceptions import (
        PredicateError as PredicateError,
    )
    from delta_ds.exceptions import (
        ProtocolChangedException as ProtocolChangedException,
    )
    from delta_ds.exceptions import (
        SchemaError as SchemaError,
    )
    from delta_ds.exceptions import (
        StorageError as StorageError,
    )
    from delta_ds.exceptions import (
        TableExistsError as TableExistsError,
    )
    from delta_ds.exceptions import (
        TimestampOutOfRangeError as TimestampOutOfRangeError,
    )
    from delta_ds.exceptions import (
        TruncatedLogError as TruncatedLogError,
    )
    from delta_ds.exceptions import (
        UncertainWriteError as UncertainWriteError,
    )
    from delta_ds.exceptions import (
        UnsupportedFeatureError as UnsupportedFeatureError,
    )
    from delta_ds.exceptions import (
        UnsupportedOperationError as UnsupportedOperationError,
    )
    from delta_ds.exceptions import (
        VersionNotFoundError as VersionNotFoundError,
    )
    from delta_ds.exceptions import (
        VersionsNotContiguousError as VersionsNotContiguousError,
    )
    from delta_ds.kernel.commands.health import Health as Health
    from delta_ds.kernel.commands.maintain import Maintenance as Maintenance
    from delta_ds.reporting.listeners import Listening as Listening
    from delta_ds.reporting.listeners import add_listener as add_listener
    from delta_ds.reporting.listeners import remove_listener as remove_listener
    from delta_ds.reporting.reports import CommandReport as CommandReport
    from delta_ds.reporting.reports import CommitReport as CommitReport
    from delta_ds.reporting.reports import ProgressReport as ProgressReport
    from delta_ds.reporting.reports import ScanReport as ScanReport
    from delta_ds.reporting.reports import SnapshotReport as SnapshotReport
    from delta_ds.spark.api.builder import DeltaTableBuilder as DeltaTableBuilder
    from delta_ds.spark.api.builder import IdentityGenerator as IdentityGenerator
    from delta_ds.spark.api.table import DeltaTable as DeltaTable
    from delta_ds.spark.as_delta.auto_register import install_as_delta as install_as_delta
    from delta_ds.spark.commands.apply_changes.builder import (
        DeltaApplyChangesBuilder as DeltaApplyChangesBuilder,
    )
    from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder as DeltaMergeBuilder
    from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder as DeltaOptimizeBuilder
    from delta_ds.spark.engines.net_changes import net_changes as net_changes
    from delta_ds.spark.register import Capability as Capability
    from delta_ds.spark.register import Registration as Registration
    from delta_ds.spark.register import register as register
    from delta_ds.spark.register import unregister as unregister
    from delta_ds.spark.ship import ship as ship

_HOMES = {
    "install_as_delta": "delta_ds.spark.as_delta.auto_register",
    "register": "delta_ds.spark.register",
    "Registration": "delta_ds.spark.register",
    "Capability": "delta_ds.spark.register",
    "unregister": "delta_ds.spark.register",
    "net_changes": "delta_ds.spark.engines.net_changes",
    "ship": "delta_ds.spark.ship",
    "DeltaTable": "delta_ds.spark.api.table",
    "DeltaTableBuilder": "delta_ds.spark.api.builder",
    "IdentityGenerator": "delta_ds.spark.api.builder",
    "DeltaApplyChangesBuilder": "delta_ds.spark.commands.apply_changes.builder",
    "DeltaMergeBuilder": "delta_ds.spark.commands.merge.builder",
    "DeltaOptimizeBuilder": "delta_ds.spark.commands.optimize",
    "Health": "delta_ds.kernel.commands.health",
    "ChangeFeed": "delta_ds.api.change_feed",
    "DeltaDeprecationWarning": "delta_ds.deprecations",
    "DeltaLog": "delta_ds.api.delta_log",
    **dict.fromkeys(["Catalog", "Moment", "catalog"], "delta_ds.api.catalog"),
    "Maintenance": "delta_ds.kernel.commands.maintain",
    "add_listener": "delta_ds.reporting.listeners",
    "remove_listener": "delta_ds.reporting.listeners",
    "Listening": "delta_ds.reporting.listeners",
    **dict.fromkeys(
        ["CommandReport", "CommitReport", "ProgressReport", "ScanReport", "SnapshotReport"],
        "delta_ds.reporting.reports",
    ),
    "Scan": "delta_ds.api.snapshot",
    "Snapshot": "delta_ds.api.snapshot",
    "Transaction": "delta_ds.api.transaction",
    **dict.fromkeys(
        [
            "AppendOnlyError", "ChangeDataError", "CommitFailedError", "ConcurrentAppendException",
            "ConcurrentDeleteDeleteException", "ConcurrentDeleteReadException",
            "ConcurrentTransactionException", "ConcurrentWriteException", "CorruptLogFileError",
            "DataFileError", "DeltaConcurrentModificationException", "DeltaError", "InvalidArgumentError",
            "InvalidOptionError",
            "InvariantViolationError", "JobFailedError", "LogError", "MetadataChangedException", "NotADeltaTableError",
            "PredicateError", "ProtocolChangedException", "SchemaError", "StorageError", "TableExistsError",
            "TimestampOutOfRangeError", "TruncatedLogError", "UncertainWriteError", "UnsupportedFeatureError",
            "UnsupportedOperationError", "VersionNotFoundError", "VersionsNotContiguousError",
        ],
        "delta_ds.exceptions",
    ),
}  # fmt: skip

__all__ = sorted(_HOMES)


def _sql_state_of(condition: str) -> str | None:
    from delta_ds.conditions.index import sql_state  # all conditions: only programs that ask pay for them

    return sql_state(condition)


exceptions.sql_state_of = _sql_state_of


def _load(name: str) -> Any:
    home = "delta_ds._version" if name == "__version__" else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    import difflib

    # Python would name the nearest by itself, but not in notebooks, and not where a name is imported.
    near = difflib.get_close_matches(name, __all__, n=1)
    return f"; did you mean {near[0]!r}?" if near and not name.startswith("_") else ""


if not TYPE_CHECKING:  # to type checkers every name would be one of this module
    __getattr__ = _load


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext delta_ds` calls: gives a notebook the magic `%%delta`, SQL in its Spark session."""
    from delta_ds.spark.notebook import load

    load(ipython)


def __dir__() -> list[str]:
    return sorted(
        {*__all__, "exceptions", "__version__", *(name for name in globals() if name.startswith("__"))}
    )
