"""Compare what an engine read with what is recorded: rows, schemas, and the kind of an error."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_ds import exceptions as errors


def difference(actual: pa.Table, wanted: pa.Table) -> str | None:
    """A short text on how two tables differ as bags of rows, or None.

    Rows and map entries may come in any order; NaN equals NaN; -0.0 differs from 0.0; timestamps with a
    zone are compared as instants; the decimals 1.0 and 1.00 are equal but their types must be the same.
    """
    if actual.column_names != wanted.column_names:
        return f"columns {actual.column_names} instead of {wanted.column_names}"
    for name, have, want in zip(wanted.column_names, actual.schema.types, wanted.schema.types, strict=True):
        if _shape(have) != _shape(want):
            return f"column {name} is {_shape(have)} instead of {_shape(want)}"
    if actual.num_rows != wanted.num_rows:
        return f"{actual.num_rows} rows instead of {wanted.num_rows}"
    if _same_in_order(actual, wanted):
        return None
    left, right = Counter(_rows(actual)), Counter(_rows(wanted))
    if left == right:
        return None
    return _first_difference(wanted.column_names, left - right, right - left)


def _same_in_order(actual: pa.Table, wanted: pa.Table) -> bool:
    """Whether flat columns are equal as they stand: cheap, and true for most large reads."""
    return all(
        _freezer(want.type) is None and have.type == want.type and have.equals(want)
        for have, want in zip(actual.columns, wanted.columns, strict=True)
    )


def not_within(part: pa.Table, whole: pa.Table) -> str | None:
    """A short text on a row of `part` that `whole` does not hold as often, or None."""
    if part.column_names != whole.column_names:
        return f"columns {part.column_names} instead of {whole.column_names}"
    extra = Counter(_rows(part)) - Counter(_rows(whole))
    return f"row that the table does not have: {next(iter(extra))}"[:300] if extra else None


def _first_difference(names: list[str], extra: Counter[Any], missing: Counter[Any]) -> str:
    have, want = min(extra, key=repr), min(missing, key=repr)
    columns = [name for name, x, y in zip(names, have, want, strict=True) if x != y]
    return (
        f"{extra.total()} rows differ, in columns {columns}: "
        f"got {_only(names, columns, have)} want {_only(names, columns, want)}"
    )


def _only(names: list[str], columns: list[str], row: Any) -> str:
    return repr([value for name, value in zip(names, row, strict=True) if name in columns])[:200]


def _shape(kind: pa.DataType) -> str:
    """The type as text, without nullability and the names that Parquet gives to list and map parts."""
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{field.name}: {_shape(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind):
        return f"list<{_shape(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_shape(kind.key_type)}, {_shape(kind.item_type)}>"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}, {'with' if kind.tz else 'without'} zone]"
    return str(kind)


def _rows(table: pa.Table) -> list[tuple[Hashable, ...]]:
    columns = [_values(table.column(i)) for i in range(table.num_columns)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _values(column: pa.ChunkedArray) -> list[Any]:
    freeze = _freezer(column.type)
    plain = column.cast(_without_clocks(column.type))
    values = plain.to_pylist()
    return values if freeze is None else [freeze(value) for value in values]


def _without_clocks(kind: pa.DataType) -> pa.DataType:
    """The type with dates and timestamps as integers: Python's end at the year 9999, Delta's do not."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_clocks(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_clocks(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_without_clocks(kind.key_type), _without_clocks(kind.item_type))
    return kind


def _freezer(kind: pa.DataType) -> Callable[[Any], Hashable] | None:
    """A function to hashable values that are equal where Spark's values are; None if they are already."""
    if pa.types.is_floating(kind):
        return _freeze_float
    if pa.types.is_struct(kind):
        parts = [(field.name, _freezer(field.type) or _same) for field in kind]
        return lambda value: None if value is None else tuple(f(value[name]) for name, f in parts)
    if pa.types.is_list(kind):
        element = _freezer(kind.value_type) or _same
        return lambda value: None if value is None else tuple(map(element, value))
    if pa.types.is_map(kind):
        key, item = _freezer(kind.key_type) or _same, _freezer(kind.item_type) or _same
        return lambda value: None if value is None else frozenset((key(k), item(v)) for k, v in value)
    return None


def _same(value: Any) -> Any:
    return value


def _freeze_float(value: float | None) -> Hashable:
    if value is None:
        return None
    if math.isnan(value):
        return "NaN"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def encode(table: pa.Table, schema: Any, encodings: dict[str, str]) -> pa.Table:
    """Turn columns that plain Parquet cannot carry into text, as the record does.

    Parameters
    ----------
    table
        Rows as the kernel gives them, variants as structs of `value` and `metadata`.
    schema
        The kernel's `StructType` of (at least) the columns to encode.
    encodings
        Column name to `to_json`, `void_as_null_string` or `schema_of_variant of <column>`.
    """
    if not encodings:
        return table
    columns: list[Any] = []
    names: list[str] = []
    for name in table.column_names:
        column = table.column(name)
        how = encodings.get(name)
        if how == "void_as_null_string":
            column = pa.nulls(len(column), pa.string())
        elif how == "to_json":
            kind = schema.find(name).type
            column = pa.array([_json_or_null(value, kind) for value in column.to_pylist()], pa.string())
        names.append(name)
        columns.append(column)
        extra = f"{name}__schema_of_variant"
        if extra in encodings:
            names.append(extra)
            columns.append(_schemas_of(table.column(name)))
    return pa.table(dict(zip(names, columns, strict=True)))


def _schemas_of(column: pa.ChunkedArray) -> pa.Array:
    from delta_ds.kernel.format.values import variant

    texts = [v if v is None else variant.schema_of(v["value"], v["metadata"]) for v in column.to_pylist()]
    return pa.array(texts, pa.string())


def _json_or_null(value: Any, kind: Any) -> str | None:
    return None if value is None else _json(value, kind)


def _json(value: Any, kind: Any) -> str:
    """The text of Spark's `to_json` with nulls kept, for the types that lie beside variants in tests."""
    import json

    from delta_ds.kernel.format.expressions.plain_sql import double_text, float_text
    from delta_ds.kernel.format.schema.types import ArrayType, MapType, StructType
    from delta_ds.kernel.format.values import variant

    if value is None:
        return "null"
    if str(kind) == "variant":
        return str(variant.to_json(value["value"], value["metadata"]))
    if isinstance(kind, StructType):
        parts = (f"{json.dumps(f.name, ensure_ascii=False)}:{_json(value[f.name], f.type)}" for f in kind)
        return "{" + ",".join(parts) + "}"
    if isinstance(kind, ArrayType):
        return "[" + ",".join(_json(element, kind.element) for element in value) + "]"
    if isinstance(kind, MapType):
        entries = (f"{json.dumps(str(k), ensure_ascii=False)}:{_json(v, kind.value)}" for k, v in value)
        return "{" + ",".join(entries) + "}"
    if isinstance(value, str | bool | int):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        text = float_text(value) if str(kind) == "float" else double_text(value)
        return text if math.isfinite(value) else json.dumps(text)
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, dt.datetime):  # recorded in sessions of UTC
        return json.dumps(value.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    if isinstance(value, dt.date):
        return json.dumps(value.isoformat())
    raise NotImplementedError(f"to_json of a {kind} beside a variant is not in the yardstick yet")


def without_internal_metadata(node: Any) -> Any:
    """A schema's JSON as users see it: Delta's own field metadata (`delta.*`) left out, at every depth."""
    if isinstance(node, list):
        return [without_internal_metadata(part) for part in node]
    if not isinstance(node, dict):
        return node
    cleaned = {key: without_internal_metadata(value) for key, value in node.items() if key != "metadata"}
    if "metadata" in node:
        cleaned["metadata"] = {
            key: value for key, value in node["metadata"].items() if not key.startswith("delta.")
        }
    return cleaned


_MISSING_CHANGES = (errors.ChangeDataError,)
_UNSUPPORTED = (errors.UnsupportedFeatureError,)

# Which of our classes speak of the cause that the reference names; names that are not here (another
# release's, or a Java exception's) may be answered by any of ours.
KINDS: dict[str, tuple[type[errors.DeltaError], ...]] = {
    "DELTA_TABLE_NOT_FOUND": (errors.NotADeltaTableError,),
    "DELTA_PATH_DOES_NOT_EXIST": (errors.NotADeltaTableError,),
    "DELTA_MISSING_DELTA_TABLE": (errors.NotADeltaTableError,),
    "DELTA_VERSIONS_NOT_CONTIGUOUS": (errors.VersionsNotContiguousError,),
    "DELTA_TRUNCATED_TRANSACTION_LOG": (errors.LogError,),
    "DELTA_LOG_FILE_NOT_FOUND": (errors.LogError, errors.VersionNotFoundError, errors.ChangeDataError),
    "DELTA_STATE_RECOVER_ERROR": (errors.LogError,),
    "DELTA_MISSING_PART_FILES": (errors.LogError,),
    "DELTA_VERSION_NOT_FOUND": (errors.VersionNotFoundError,),
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ": _UNSUPPORTED,
    "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG": _UNSUPPORTED,
    "DELTA_INVALID_PROTOCOL_VERSION": _UNSUPPORTED,
    "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH": _UNSUPPORTED,
    "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED": _UNSUPPORTED,
    "DELTA_GEOSPATIAL_NOT_SUPPORTED": _UNSUPPORTED,
    "DELTA_UNKNOWN_COLUMN_MAPPING_MODE": _UNSUPPORTED,
    "DELTA_READ_TABLE_WITHOUT_COLUMNS": (errors.SchemaError,),
    "FAILED_READ_FILE.NO_HINT": (errors.LogError, errors.DataFileError),
    "FAILED_READ_FILE.FILE_NOT_EXIST": (errors.DataFileError,),
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": (errors.TimestampOutOfRangeError,),
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": (errors.TimestampOutOfRangeError,),
    "DELTA_MISSING_CHANGE_DATA": _MISSING_CHANGES,
    "DELTA_CDC_START_VERSION_AFTER_LATEST": _MISSING_CHANGES,
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA": _MISSING_CHANGES,
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE": _MISSING_CHANGES,
    "DELTA_CHANGE_TABLE_FEED_DISABLED": _MISSING_CHANGES,
}

# Causes that one class covers in both directions, so that only the condition tells them apart.
EXACT = {"DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"}


def wrong_kind(kind: type[errors.DeltaError] | None, condition: str | None, wanted: str) -> str | None:
    """Why an error is not an answer to the recorded condition `wanted`, or None.

    `kind` and `condition` are those of our error; `kind` None is an error that is not one of ours.
    """
    if kind is None:
        return f"not one of our errors (wanted {wanted})"
    if condition == wanted:
        return None
    accepted = KINDS.get(wanted, (errors.DeltaError,))
    if wanted in EXACT or not issubclass(kind, accepted):
        return f"{kind.__name__} [{condition}] does not speak of {wanted}"
    return None
