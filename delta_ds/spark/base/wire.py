"""Values as JSON text: what a client and a server of Spark Connect tell each other of tables.

The text is data. To read it makes values of the types below and of the classes listed here, and looks up functions
listed here; nothing else is called, and nothing is imported that the other side chooses. What is not listed cannot be
sent, which shows when it is written.

JSON's own values stand for themselves; everything else is an object of one key, which names the type.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache, partial
from importlib import import_module
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.session import UNREADABLE_MESSAGE

if TYPE_CHECKING:
    import numpy as np

_PACKAGE = "delta_ds."
# Longer texts are compressed: plans of many files say the same over and over.
_MOST_PLAIN = 1 << 16


def _names(listed: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"{module}:{name}" for module, names in listed.items() for name in names.split())


# Classes of values, by their modules.
_RECORDS = _names(
    {
        "kernel.format.actions": "Metadata Protocol",
        "kernel.transaction.alter.columns": "NewColumn",
        "kernel.base.card": "Card CardTable Share",
        "kernel.commands.dml.candidates": "CandidateFiles Rewritten",
        "kernel.commands.dml.commit": "DmlCommand RowScope",
        "kernel.commands.dml.in_process": "CommandSettings",
        "kernel.commands.dml.plan": "DmlPlan FileRewrite SpecialColumns",
        "kernel.commands.health": "Due Health",
        "kernel.commands.merge.clauses": "Clause MergeRequest",
        "kernel.commands.optimize.auto_compact": "AutoCompaction",
        "kernel.commands.optimize.planning": "OptimizePlan",
        "kernel.commands.optimize.reorg": "Description",
        "kernel.commands.optimize.request": "OptimizeRequest OptimizeSettings",
        "kernel.commands.optimize.rewriting": "Bin RewritePlan",
        "kernel.commands.optimize.bins": "ZCubeStats",
        "kernel.commands.optimize.zorder_curve": "ClusteringCurve",
        "kernel.files.read.plan": "FileSlice ReadPlan",
        "kernel.files.rows.checks": "Condition NotNull Length",
        "kernel.files.rows.expressions": "RowExpression",
        "kernel.files.rows.generated": "Default Generated Identity",
        "kernel.files.rows.plan": "RowPlan",
        "kernel.format.values.deletion_vector": "DeletionVectorDescriptor",
        "kernel.files.write.write_spec": "WriteSpec",
        "kernel.format.expressions.moments": "FarDate FarTimestamp",
        "kernel.format.expressions.tree": "Call Cast Column Literal",
        "kernel.commands.layout.column": "ColumnLayout",
        "kernel.commands.layout.timeline": "Timeline",
        "kernel.format.options.settings": "SessionFacts",
        "kernel.format.properties": "PropertyRules",
        "kernel.format.options.write": "NewTableOptions WriteOptions",
        "kernel.commands.plot.asked": "Skipping",
        "kernel.format.schema.types": "ArrayType DecimalType MapType PrimitiveType StructField StructType "
        "UserDefinedType",
        "kernel.storage.coordination.coordinator": "ManagedTable ProposedCommit RatifiedCommits",
        "kernel.storage.uri": "Address",
        "kernel.format.table_state": "TableState",
        "kernel.transaction.write.intent": "WriteIntent",
        "kernel.transaction.write.overwrite_scope": "OverwriteScope ReplaceCheck",
        "kernel.transaction.write.plan": "WritePlan",
        "kernel.transaction.write.task": "TaskResult",
        "spark.base.query_needs": "Needed",
        "spark.commands.blame": "Asked",
    }
)

# Functions that may be called at the other side, by their modules.
_FUNCTIONS = _names(
    {
        "kernel.transaction.alter.change_column": "alter_column change_columns",
        "kernel.transaction.alter.clustering": "cluster_by",
        "kernel.transaction.alter.columns": "add_columns drop_columns place_columns rename_column sync_identity",
        "kernel.transaction.alter.definitions": "drop_constraint",
        "kernel.transaction.alter.create": "create_table",
        "kernel.transaction.alter.properties": (
            "add_feature_support set_properties unset_properties upgrade_table_protocol"
        ),
        "kernel.transaction.alter.schema_change": "replace_columns replace_columns_of_empty",
        "kernel.commands.convert_to_delta": "convert_to_delta",
        "kernel.commands.dml.candidates": "all_evaluable candidate_files covered_files distinct_partitions "
        "usable_predicate with_row_counts",
        "kernel.commands.dml.commit": "discard_folder",
        "kernel.commands.dml.plan": "check_changeable evolve_table generated_columns plan_dml "
        "plan_file_rewrite plan_replacement special_columns",
        "kernel.commands.drop_feature": "finish_dropping rewrite_request switch_off unmapping_request",
        "kernel.commands.maintain": "generate examine run_log_step",
        "kernel.commands.health": "health",
        "kernel.commands.optimize.commit": "commit_optimize discard_staged",
        "kernel.commands.restore": "restore",
        "kernel.commands.optimize.command": "begin_upgrade finish_upgrade",
        "api.delta_log": "DeltaLog.checkpoint DeltaLog.history",
        "kernel.commands.plot.asked": "column_layout skipping timeline",
        "kernel.transaction.write.intent": "has_transaction",
        "spark.commands.apply_changes.run": "_partition_columns",
        "spark.commands.dml_command": "_commit",
        "spark.commands.dml_target": "_state",
        "spark.commands.handle": "_opened",
        "spark.commands.optimize": "_plan_on_server",
        "spark.engines.connect.kernel_rows": "delete_in_kernel merge_in_kernel update_in_kernel",
        "spark.engines.connect.log_calls": "add_checked_constraint at_version belongs_to_a_table blamed clone_to "
        "constraint_to_check detail identity_step is_shorter_retention metrics_of metrics_since newest_version "
        "unneeded_files vacuum_table",
        "spark.engines.portable.stream_source": "check_given_schema check_tracked",
        "spark.session.writes.request": "describe describe_existing",
    }
)


def encode(value: Any) -> str:
    """A value as text.

    Raises
    ------
    TypeError
        It holds something that has no form there.
    """
    text = json.dumps(_told(value), allow_nan=False)
    if len(text) < _MOST_PLAIN:
        return text
    return json.dumps({"compressed": _packed(zlib.compress(text.encode(), 1))})


def decode(text: str) -> Any:
    """The value that a text says.

    Raises
    ------
    DeltaError
        It says none: it was made by something else, or by another version of this package.
    """
    try:
        return _said(json.loads(text))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, zlib.error) as error:
        raise UNREADABLE_MESSAGE(reason=f"{type(error).__name__}: {error}") from error


# --- to JSON


def _told(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is list:
        return _each(value)
    tell = _TELLERS.get(kind)
    if tell is not None:
        return tell(value)
    name = f"{kind.__module__.removeprefix(_PACKAGE)}:{kind.__qualname__}"
    if name in _RECORDS:
        return {"record": [name, *(_told(getattr(value, field)) for field in _fields(kind))]}
    for base, tell in _tellers_of_bases():
        if isinstance(value, base):
            return tell(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, list):
        return _each(value)
    if callable(value):
        return {"function": _function_name(value)}
    raise TypeError(f"{value!r} has no form in a message between a client and a server")


def _mapping(value: Mapping[Any, Any]) -> Any:
    if all(type(key) is str for key in value):
        return {"texts": {key: _told(one) for key, one in value.items()}}
    return {"map": [[_told(key), _told(one)] for key, one in value.items()]}


def _function_name(value: Any) -> str:
    name = f"{value.__module__.removeprefix(_PACKAGE)}:{value.__qualname__}"
    if name not in _FUNCTIONS:
        raise TypeError(f"{name} is not among the functions that a client may have called")
    return name


def _packed(data: Any) -> str:
    return base64.b64encode(data).decode()


def _each(value: Any) -> list[Any]:
    return [_told(one) for one in value]


_TELLERS: Mapping[type, Callable[[Any], Any]] = {
    float: lambda value: value if math.isfinite(value) else {"float": repr(value)},
    tuple: lambda value: {"tuple": _each(value)},
    set: lambda value: {"set": sorted(_each(value), key=json.dumps)},
    frozenset: lambda value: {"frozenset": sorted(_each(value), key=json.dumps)},
    dict: _mapping,
    bytes: lambda value: {"bytes": _packed(value)},
    Decimal: lambda value: {"decimal": str(value)},
    dt.datetime: lambda value: {"datetime": [value.isoformat(), value.fold]},
    dt.date: lambda value: {"date": value.isoformat()},
    dt.timedelta: lambda value: {"timedelta": [value.days, value.seconds, value.microseconds]},
    EllipsisType: lambda value: {"left out": None},
    partial: lambda value: {"partial": [_told(value.func), _each(value.args), _mapping(value.keywords)]},
}


@cache
def _tellers_of_bases() -> list[tuple[type, Callable[[Any], Any]]]:
    """For classes that have classes of their own, and that are dear to import."""
    import numpy as np
    import pyarrow as pa

    from delta_ds.kernel.storage.coordination.storage import CoordinatedStorage
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.storage.store_options import SecretOptions

    return [
        (SecretOptions, lambda value: {"secret": _mapping(value)}),
        (
            CoordinatedStorage,
            lambda value: {"coordinated": _each([value.address, value.options, value.known()])},
        ),
        (Storage, lambda value: {"storage": _each([value.address, value.options])}),
        (dt.datetime, _TELLERS[dt.datetime]),
        (pa.Array, lambda value: {"array": _packed(_ipc(pa.table({"": value})))}),
        (pa.ChunkedArray, lambda value: {"chunks": _packed(_ipc(pa.table({"": value})))}),
        (pa.Table, lambda value: {"table": _packed(_ipc(value))}),
        (pa.Schema, lambda value: {"schema": _packed(value.serialize())}),
        (np.ndarray, lambda value: {"numbers": [value.dtype.str, list(value.shape), _packed(_plain(value))]}),
        (np.bool_, lambda value: bool(value)),
        (np.integer, lambda value: int(value)),
    ]


def _ipc(table: Any) -> Any:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def _plain(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.kind not in "iufb":
        raise TypeError(
            f"numbers of type {array.dtype} have no form in a message between a client and a server"
        )
    return array.tobytes()


# --- from JSON


def _said(told: Any) -> Any:
    if isinstance(told, list):
        return [_said(one) for one in told]
    if not isinstance(told, dict):
        return told
    ((kind, content),) = told.items()
    return _READERS[kind](content)


def _texts(content: Any) -> dict[str, Any]:
    return {str(key): _said(one) for key, one in content.items()}


def _record(content: Any) -> Any:
    name, *values = content
    found = _named(name, _RECORDS)
    return found(**dict(zip(_fields(found), map(_said, values), strict=True)))


def _storage(content: Any) -> Any:
    from delta_ds.kernel.storage.open import open_plain

    address, options = map(_said, content)
    return open_plain(address, options)


def _coordinated(content: Any) -> Any:
    from delta_ds.kernel.storage.coordination.storage import restored
    from delta_ds.kernel.storage.open import open_plain

    address, options, known = map(_said, content)
    return restored(address, options, open_plain, known)


def _secret(content: Any) -> Any:
    from delta_ds.kernel.storage.store_options import SecretOptions

    return SecretOptions(_said(content))


def _partial(content: Any) -> partial[Any]:
    function, arguments, keywords = map(_said, content)
    return partial(function, *arguments, **keywords)


def _table(content: Any) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(_bytes(content)).read_all()


def _array(content: Any) -> Any:
    import pyarrow as pa

    column = _table(content).column(0)
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    )


def _schema(content: Any) -> Any:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(_bytes(content)))


def _numbers(content: Any) -> Any:
    import numpy as np

    kind, shape, data = content
    if np.dtype(kind).kind not in "iufb":
        raise TypeError(f"{kind} is no type of numbers")
    return np.frombuffer(_bytes(data), kind).reshape(shape).copy()


def _bytes(content: str) -> bytes:
    return base64.b64decode(content, validate=True)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": lambda content: tuple(map(_said, content)),
    "set": lambda content: set(map(_said, content)),
    "frozenset": lambda content: frozenset(map(_said, content)),
    "texts": _texts,
    "map": lambda content: {_said(key): _said(one) for key, one in content},
    "bytes": _bytes,
    "decimal": Decimal,
    "datetime": lambda content: dt.datetime.fromisoformat(content[0]).replace(fold=content[1]),
    "date": dt.date.fromisoformat,
    "timedelta": lambda content: dt.timedelta(*content),
    "record": _record,
    "function": lambda name: _named(name, _FUNCTIONS),
    "left out": lambda _: ...,
    "partial": _partial,
    "secret": _secret,
    "storage": _storage,
    "coordinated": _coordinated,
    "array": _array,
    "chunks": lambda content: _table(content).column(0),
    "table": _table,
    "schema": _schema,
    "numbers": _numbers,
    "compressed": lambda content: _said(json.loads(zlib.decompress(_bytes(content)))),
}


# --- what is listed


def _named(name: str, listed: frozenset[str]) -> Any:
    if name not in listed:
        raise ValueError(f"{name!r} is not known")
    module, _, path = name.partition(":")
    found: Any = import_module(_PACKAGE + module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _fields(record: Any) -> list[str]:
    return [name for name, said in record.__record__.fields.items() if said.init]
