"""What the page may ask: each answer by its name, with the parameters it takes; others are refused.

Among the answers, what a version of a table is: detail, properties, features, and columns with their ranges over all
files, and how well lookups by each skip files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pyarrow.compute as pc

from delta_ds.api.snapshot import Snapshot as Shown
from delta_ds.cli.json_values import shown, value_of
from delta_ds.cli.ui.files import (
    commit_page,
    file_page,
    filter_summary,
    first_rows,
    partition_page,
    timeline_page,
)
from delta_ds.cli.ui.view import TableView
from delta_ds.conditions.record import WRONG_PARAMETER_OF_PAGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.health import health
from delta_ds.kernel.commands.layout.column import column_layout
from delta_ds.kernel.files.scan.file_pruning import find_statistics_column
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.features import FEATURES
from delta_ds.kernel.format.properties import PROPERTIES
from delta_ds.kernel.format.schema.column_paths import Path, quote, show
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.log.history import datetime_of
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.commands.layout.column import ColumnLayout
    from delta_ds.kernel.log.snapshot import Snapshot

# A page of a thousand columns is long enough.
_MOST_FIELDS = 1000


_LARGEST = (1 << 63) - 1
_MOST_ENTRIES = 500
_MOST_PARAMETERS = 20


def describe(view: TableView, at: str) -> dict[str, Any]:
    """A version, named by number or time, and the newest there is."""
    newest = view.newest()
    snapshot = view.resolve(at) if at.strip() or view.start is not None else newest
    detail: dict[str, Any] = {**Shown(snapshot).detail()}
    detail["createdAt"] = None if detail["createdAt"] is None else datetime_of(detail["createdAt"])
    detail["lastModified"] = datetime_of(detail["lastModified"])
    columns = list(_fields(snapshot.schema, ()))
    return {
        **detail,
        **view.figures(snapshot.version).totals(),
        "version": snapshot.version,
        "newest": newest.version,
        "zone": view.zone,
        "columns": columns[:_MOST_FIELDS],
        "numColumns": len(columns),
        "properties": [
            {
                "name": name,
                "value": value,
                "meaning": PROPERTIES[name].meaning if name in PROPERTIES else None,
            }
            for name, value in sorted(snapshot.properties.items())
        ],
        "features": [_feature(name, snapshot.properties) for name in detail["tableFeatures"]],
        "domains": sorted(snapshot.domains),
        "applications": len(snapshot.txns),
    }


def _fields(schema: StructType, inside: Path) -> Iterator[dict[str, Any]]:
    for field in schema.fields:
        yield {
            "name": field.name,
            "depth": len(inside),
            "type": _type_name(field.type),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
            "metadata": {key: value for key, value in field.metadata.items() if key != "comment"},
        }
        nested = _struct_in(field.type)
        if nested is not None:
            yield from _fields(nested, (*inside, field.name))


def _struct_in(data_type: DataType) -> StructType | None:
    """The struct that a type is, or has as its elements."""
    if isinstance(data_type, ArrayType):
        return _struct_in(data_type.element)
    if isinstance(data_type, MapType):
        return _struct_in(data_type.value)
    return data_type if isinstance(data_type, StructType) else None


def _type_name(data_type: DataType) -> str:
    if isinstance(data_type, StructType):
        return "struct"
    if isinstance(data_type, ArrayType):
        return f"array<{_type_name(data_type.element)}>"
    if isinstance(data_type, MapType):
        return f"map<{_type_name(data_type.key)},{_type_name(data_type.value)}>"
    return str(data_type)


def _feature(name: str, properties: dict[str, str]) -> dict[str, Any]:
    known = FEATURES.get(name)
    if known is None:
        return {"name": name, "kind": None, "property": None, "on": None}
    return {
        "name": name,
        "kind": known.kind,
        "property": None if known.enabled_by is None else known.enabled_by.name,
        "on": known.is_turned_on(properties),
    }


# Ranges in one drawing; with more files each bar stands for several of them.
_MOST_BARS = 200
_MOST_TEXT = 120


def column_page(view: TableView, version: int, offset: int, limit: int) -> dict[str, Any]:
    """Columns with least and greatest value, nulls, and the files that a lookup of a value reads."""
    snapshot = view.snapshot(version)
    leaves = list(_leaves(snapshot.schema, ()))
    page = leaves[offset : offset + limit]
    _load(snapshot, [path for path, _ in page])
    return {
        "total": len(leaves),
        "numFiles": snapshot.live_files().num_rows,
        "columns": [
            {
                "name": show(path),
                "column": quote(path),
                "type": str(field.type),
                **_figures(view, snapshot, path),
            }
            for path, field in page
        ],
    }


def _leaves(schema: StructType, inside: Path) -> Iterator[tuple[Path, StructField]]:
    """What may have values of its own in statistics: columns, and fields of structs."""
    for field in schema.fields:
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, (*inside, field.name))
        else:
            yield (*inside, field.name), field


def _load(snapshot: Snapshot, paths: list[Path]) -> None:
    """Parse the statistics of all columns at once; each finds its own afterwards."""
    found = [find_statistics_column(snapshot.schema, path, snapshot.mapping_mode) for path in paths]
    files = snapshot.live_files()
    leaves = [(leaf.path, leaf.type) for leaf in found if leaf is not None]
    load_statistics(files, row_numbers(files.num_rows), leaves)


def _figures(view: TableView, snapshot: Snapshot, path: Path) -> dict[str, Any]:
    try:
        layout = column_layout(snapshot, quote(path), timezone=view.zone)
    except UnsupportedOperationError:
        # Logs hold no bounds of such a type.
        return {"bounds": False}
    nulls = layout.files["nulls"]
    known = layout.known
    return {
        "bounds": True,
        "low": _text(value_of(pc.min(known["low"]))) if known.num_rows else None,
        "high": _text(value_of(pc.max(known["high"]))) if known.num_rows else None,
        "nulls": None if nulls.null_count else pc.sum(nulls).as_py() or 0,
        "unknown": layout.num_unknown,
        "read": layout.files_read(),
    }


def range_page(view: TableView, version: int, column: str, where: str) -> dict[str, Any]:
    """The ranges of a column, file by file or, where there are many, of neighbours together, for a drawing.

    Returns
    -------
    dict
        `bars`: `at` and `to` between 0 and 1 on the axis from `low` to `high`, `files`, `from` and `till` as texts, and
        `read`: the share of its files that the predicate reads, None without one.

    Raises
    ------
    DeltaError
        There is no such column, logs hold no bounds of it, or the predicate is wrong.
    """
    layout = column_layout(view.snapshot(version), column, timezone=view.zone)
    known = layout.known
    if where.strip():
        explained = view.explain(version, where).files
        kept = explained.filter(explained["kept"])["path"]
        known = known.append_column("kept", pc.is_in(known["path"], kept.combine_chunks()))
    bars = _bars(known)
    return {
        "column": layout.column,
        "type": layout.type,
        "numFiles": layout.num_files,
        "unknown": layout.num_unknown,
        "withoutValues": layout.num_without_values,
        "low": _text(value_of(pc.min(known["low"]))) if known.num_rows else None,
        "high": _text(value_of(pc.max(known["high"]))) if known.num_rows else None,
        "read": _read(layout),
        "bars": bars,
    }


def _read(layout: ColumnLayout) -> dict[str, float]:
    return {"value": layout.files_read(), "tenth": layout.files_read(0.1)}


def _bars(known: pa.Table) -> list[dict[str, Any]]:
    import numpy as np

    count = known.num_rows
    if not count:
        return []
    low_at, high_at = np.array(known["low_at"]), np.array(known["high_at"])
    start, span = low_at.min(), max(high_at.max() - low_at.min(), np.finfo(float).tiny)
    bars = min(count, _MOST_BARS)
    starts = np.arange(bars) * count // bars
    ends = [*starts[1:], count]
    out = []
    for first, end in zip(starts, ends, strict=True):
        part = known.slice(int(first), int(end - first))
        out.append(
            {
                "at": float((low_at[first:end].min() - start) / span),
                "to": float((high_at[first:end].max() - start) / span),
                "files": int(end - first),
                "from": _text(value_of(pc.min(part["low"]))),
                "till": _text(value_of(pc.max(part["high"]))),
                "read": pc.mean(part["kept"]).as_py() if "kept" in part.column_names else None,
            }
        )
    return out


def _text(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One answer.

    Attributes
    ----------
    call
        Makes it of the view and the parameters.
    takes
        The parameters: what gives each its type.
    defaults
        The values of those that may be left out.
    """

    call: Callable[..., Any]
    takes: Mapping[str, Callable[[str], Any]]
    defaults: Mapping[str, Any]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > _LARGEST:
        raise ValueError("it is a whole number from 0 on")
    return int(text)


def _limit(text: str) -> int:
    number = _number(text)
    if not 1 <= number <= _MOST_ENTRIES:
        raise ValueError(f"it is a number from 1 to {_MOST_ENTRIES}")
    return number


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it is one of {', '.join(choices)}")
        return text

    return parse


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _health(view: TableView) -> dict[str, Any]:
    return asdict(health(view.log, files=True))


_PAGE: dict[str, Callable[[str], Any]] = {"offset": _number, "limit": _limit}
_FIRST: dict[str, Any] = {"offset": 0, "limit": 50}

_ENDPOINTS = {
    "table": _Endpoint(describe, {"at": str}, {"at": ""}),
    "timeline": _Endpoint(timeline_page, {"before": _number, "limit": _limit}, {"before": None, "limit": 50}),
    "commit": _Endpoint(commit_page, {"version": _number, **_PAGE}, _FIRST),
    "partitions": _Endpoint(
        partition_page,
        {
            "version": _number,
            "sort": _one_of("values", "files", "bytes", "rows", "deleted"),
            "descending": _flag,
            **_PAGE,
        },
        {"sort": "values", "descending": False, **_FIRST},
    ),
    "files": _Endpoint(
        file_page,
        {
            "version": _number,
            "where": str,
            "kept": _one_of("", "yes", "no"),
            "partition": _number,
            "sort": _one_of("path", "bytes", "rows", "deleted", "modified"),
            "descending": _flag,
            **_PAGE,
        },
        {"where": "", "kept": "", "partition": None, "sort": "path", "descending": False, **_FIRST},
    ),
    "filter": _Endpoint(filter_summary, {"version": _number, "where": str}, {}),
    "columns": _Endpoint(column_page, {"version": _number, **_PAGE}, _FIRST),
    "ranges": _Endpoint(range_page, {"version": _number, "column": str, "where": str}, {"where": ""}),
    "health": _Endpoint(_health, {}, {}),
    "rows": _Endpoint(
        first_rows, {"version": _number, "where": str, "limit": _limit}, {"where": "", "limit": 50}
    ),
}


def answer(view: TableView, name: str, query: str) -> Any:
    """The answer to a request.

    Parameters
    ----------
    name
        Of the answer.
    query
        Its parameters, as in an address.

    Raises
    ------
    LookupError
        There is no such answer.
    InvalidOptionError
        A parameter is missing, unknown or wrong.
    DeltaError
        What the table has to say against it.
    """
    endpoint = _ENDPOINTS.get(name)
    if endpoint is None:
        raise LookupError(f"there is no {name!r} here; there are {', '.join(_ENDPOINTS)}")
    return endpoint.call(view, **_arguments(name, endpoint, query))


def _arguments(name: str, endpoint: _Endpoint, query: str) -> dict[str, Any]:
    try:
        given = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError as error:
        raise WRONG_PARAMETER_OF_PAGE(name=name, parameter="", reason=error) from None
    found = dict(endpoint.defaults)
    for parameter, text in given:
        parse = endpoint.takes.get(parameter)
        if parse is None:
            known = ", ".join(endpoint.takes) or "none"
            raise WRONG_PARAMETER_OF_PAGE(name=name, parameter=parameter, reason=f"it takes {known}")
        try:
            found[parameter] = parse(text)
        except ValueError as error:
            raise WRONG_PARAMETER_OF_PAGE(name=name, parameter=parameter, reason=error) from None
    for parameter in endpoint.takes:
        if parameter not in found:
            raise WRONG_PARAMETER_OF_PAGE(name=name, parameter=parameter, reason="it is missing")
    return found
