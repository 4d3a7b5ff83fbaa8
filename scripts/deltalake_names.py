"""What deltalake's public names are called here: a table of both with their parameters, for the guide of who migrates.

docs/deltalake-names.json has the names of a release of deltalake. Where that is installed, they are recorded anew by

    python scripts/deltalake_names.py --record
"""

from __future__ import annotations

import inspect
import json
import pydoc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

RECORDED = ROOT / "docs" / "deltalake-names.json"
# Parameters of nearly every method, which the page tells of once.
_EVERYWHERE = {"args", "commit_properties", "post_commithook_properties", "writer_properties"}

# A name of deltalake -> names here, of which the first that is there counts; in parentheses: what to do instead.
OURS: dict[str, tuple[str, ...]] = {
    "DeltaTable": ("DeltaLog",),
    "DeltaTable.is_deltatable": ("(`NotADeltaTableError` of `DeltaLog.snapshot`)",),
    "DeltaTable.create": ("(`DeltaLog.write` of an empty table)",),
    "DeltaTable.version": ("Snapshot.version",),
    "DeltaTable.load_as_version": ("DeltaLog.snapshot",),
    "DeltaTable.update_incremental": ("DeltaLog.snapshot",),
    "DeltaTable.partitions": ("Snapshot.files",),
    "DeltaTable.file_uris": ("Snapshot.files",),
    "DeltaTable.get_add_actions": ("Snapshot.files",),
    "DeltaTable.deletion_vectors": ("Snapshot.files",),
    "DeltaTable.table_uri": ("(`detail()` of a snapshot has `location`)",),
    "DeltaTable.table_config": ("Snapshot.properties",),
    "DeltaTable.schema": ("Snapshot.schema",),
    "DeltaTable.metadata": ("Snapshot.metadata",),
    "DeltaTable.protocol": ("Snapshot.protocol",),
    "DeltaTable.transaction_version": ("Snapshot.txns",),
    "DeltaTable.history": ("DeltaLog.history",),
    "DeltaTable.count": ("Scan.count",),
    "DeltaTable.scan": ("Scan.to_reader",),
    "DeltaTable.to_pandas": ("DeltaLog.to_pandas",),
    "DeltaTable.to_pyarrow_table": ("DeltaLog.to_arrow",),
    "DeltaTable.to_pyarrow_dataset": ("DeltaLog.to_pyarrow_dataset",),
    "DeltaTable.load_cdf": ("DeltaLog.changes",),
    "DeltaTable.delete": ("DeltaLog.delete", "delta_ds.kernel.commands.dml.delete.delete"),
    "DeltaTable.update": ("DeltaLog.update", "(`DeltaTable.update`, in Spark)"),
    "DeltaTable.merge": ("DeltaLog.merge", "(`DeltaTable.merge`, in Spark)"),
    "DeltaTable.restore": ("DeltaLog.restore",),
    "DeltaTable.vacuum": ("DeltaLog.vacuum",),
    "DeltaTable.repair": ("(`pydelta fsck` tells what is missing)",),
    "DeltaTable.generate": ("(`DeltaTable.generate`, in Spark)",),
    "DeltaTable.create_checkpoint": ("DeltaLog.checkpoint",),
    "DeltaTable.cleanup_metadata": ("(by itself, after checkpoints)",),
    "DeltaTable.compact_logs": ("(compacted logs are read, not written)",),
    "DeltaTable.create_write_transaction": ("DeltaLog.start_transaction",),
    "DeltaTable.optimize": ("(methods of `DeltaLog`)",),
    "DeltaTable.optimize.compact": ("DeltaLog.optimize",),
    "DeltaTable.optimize.z_order": ("DeltaLog.zorder",),
    "DeltaTable.alter": ("(methods of `DeltaLog`)",),
    "DeltaTable.alter.add_columns": ("DeltaLog.add_columns",),
    "DeltaTable.alter.add_constraint": ("DeltaLog.add_constraint",),
    "DeltaTable.alter.drop_constraint": ("DeltaLog.drop_constraint",),
    "DeltaTable.alter.add_feature": ("DeltaLog.add_feature",),
    "DeltaTable.alter.set_table_properties": ("DeltaLog.set_properties",),
    "DeltaTable.alter.set_table_description": ("(`comment` of `DeltaLog.set_properties`)",),
    "DeltaTable.alter.set_table_name": ("(no counterpart: a name belongs to a catalog)",),
    "DeltaTable.alter.set_column_metadata": ("(comments: `ALTER TABLE`, in Spark)",),
    "DeltaTable.alter.drop_column_not_null": ("(`ALTER TABLE ... DROP NOT NULL`, in Spark)",),
    "write_deltalake": ("DeltaLog.write",),
    "convert_to_deltalake": ("DeltaLog.convert",),
    "QueryBuilder.register": ("DeltaLog.to_duckdb",),
    "QueryBuilder.execute": ("(DuckDB's SQL on `DeltaLog.to_duckdb`; `pydelta sql`)",),
}
# The clauses of a merge are told of by the method that begins one.
_LEFT_OUT = "DeltaTable.merge()."


def recorded() -> dict[str, Any]:
    """The version of deltalake, and its names with their parameters; None for a property."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def rows() -> Iterator[list[str]]:
    """deltalake's name with its parameters, and what it is called here."""
    for name, parameters in sorted(recorded()["names"].items()):
        if not name.startswith(_LEFT_OUT):
            yield [_called(name, _shown(parameters)), _ours(OURS[name])]


def _ours(candidates: tuple[str, ...]) -> str:
    for name in candidates:
        if name.startswith("("):
            return name[1:-1]
        found = resolve(name)
        if found is not None:
            return _called(name.removeprefix("delta_ds.kernel.commands.dml.delete."), found)
    raise LookupError(f"none of {', '.join(candidates)} is there")


def resolve(name: str) -> list[str] | tuple[()] | None:
    """The parameters of a name of this package; an empty tuple for a property, None where there is none."""
    value = pydoc.locate(name if name.startswith("delta_ds.") else f"delta_ds.{name}")
    if value is None:
        return None
    if not callable(value):
        return ()
    return _parameters(value.__init__ if inspect.isclass(value) else value)  # type: ignore[misc]


def _parameters(function: Callable[..., Any]) -> list[str]:
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.name != "self" and each.kind is not each.VAR_KEYWORD]


def _called(name: str, parameters: Any) -> str:
    return f"`{name}`" if parameters is None or parameters == () else f"`{name}({', '.join(parameters)})`"


def _shown(parameters: list[str] | None) -> list[str] | None:
    return parameters if parameters is None else [each for each in parameters if each not in _EVERYWHERE]


def record() -> None:
    """Write the names of the deltalake that is installed."""
    import deltalake
    from deltalake import table

    owners = {
        "DeltaTable": deltalake.DeltaTable,
        "DeltaTable.optimize": table.TableOptimizer,
        "DeltaTable.alter": table.TableAlterer,
        "DeltaTable.merge()": table.TableMerger,
        "QueryBuilder": deltalake.QueryBuilder,
    }
    names: dict[str, list[str] | None] = {"DeltaTable": _parameters(deltalake.DeltaTable.__init__)}
    for function in (deltalake.write_deltalake, deltalake.convert_to_deltalake):
        names[function.__name__] = _parameters(function)
    for owner, kind in owners.items():
        for name, member in vars(kind).items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and (callable(function) or isinstance(member, property)):
                found = None if isinstance(member, property) else _parameters(function)
                names[f"{owner}.{name}"] = (
                    found if found is None else [each for each in found if each != "cls"]
                )
    RECORDED.write_text(
        json.dumps({"version": deltalake.__version__, "names": names}, indent=1, sort_keys=True) + "\n"
    )


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        raise SystemExit(__doc__)
    record()
