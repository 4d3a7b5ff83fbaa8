"""Read the actions of commits, compactions and JSON manifests to Arrow, many files in one columnar parse.

File actions (`add`, `remove`, `cdc`) become one Arrow table; the few other actions are found by their
key in the raw bytes and parsed one by one, since free maps have no Arrow JSON form. A commit that the
columnar parser refuses goes through a slow line-by-line path: either it is odd but right (numbers
written as strings, duplicate keys), or the error names its version and line.

Source: PROTOCOL.md, "Delta Log Entries"; protocol-checklist COM-*.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from delta_ds.events.log import LOG_FILE_PARSED_SLOWLY
from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.format.actions import Action, is_long
from delta_ds.kernel.log.file_actions import FILE_ACTIONS

if TYPE_CHECKING:
    import pyarrow as pa


# Small files are joined up to this size before parsing.
_JOIN_BYTES = 8 << 20
_BLOCK_BYTES = 1 << 20


def parse_file_actions(files: Sequence[tuple[str, bytes]], schema: pa.Schema) -> list[pa.Table]:
    """The file actions of many files.

    Parameters
    ----------
    files
        (name for messages, bytes), in the order in which rows shall come.
    schema
        From `file_actions.actions_schema`.

    Returns
    -------
    list of pyarrow.Table
        Tables of `schema` with, all in all, one row per action of any kind (other actions are rows of nulls),
        in order.

    Raises
    ------
    CorruptLogFileError
        A file is not newline-delimited JSON objects, or an action lacks its path.
    """
    tables: list[pa.Table] = []
    group: list[tuple[str, bytes]] = []
    size = 0
    for file in files:
        if group and size + len(file[1]) > _JOIN_BYTES:
            tables += _parse_group(group, schema)
            group, size = [], 0
        group.append(file)
        size += len(file[1])
    return tables + _parse_group(group, schema) if group else tables


def _parse_group(group: list[tuple[str, bytes]], schema: pa.Schema) -> list[pa.Table]:
    """Parse small files together, as each parse has a fixed cost."""
    import pyarrow as pa

    try:
        data = group[0][1] if len(group) == 1 else b"\n".join(data for _, data in group)
        return [_parse_arrow(data, schema)]
    except pa.ArrowInvalid:
        if len(group) > 1:
            # One of the files is odd or broken: find out which.
            return [table for file in group for table in _parse_group([file], schema)]
    path, data = group[0]
    LOG_FILE_PARSED_SLOWLY.log(path=path)
    return [_parse_slowly(data, schema, path)]


def _parse_arrow(data: bytes, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

    if is_blank(data):
        return pa.Table.from_batches([], schema)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")

    def parse(block: int) -> pa.Table:
        read = pj.ReadOptions(block_size=block, use_threads=True)
        # Parsing frees about as much as it keeps; Arrow's default pool pays for that with page faults, one core
        # second for 200 MB of log, the system's allocator hardly does.
        return pj.read_json(
            pa.BufferReader(data),
            read_options=read,
            parse_options=options,
            memory_pool=pa.system_memory_pool(),
        )

    try:
        table = parse(min(_BLOCK_BYTES, max(len(data) + 1, 1 << 16)))
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error) or len(data) >= 1 << 31:
            raise
        table = parse(len(data) + 1)
    for name in table.column_names:
        column = table[name]
        # Arrow takes any bytes for text.
        column.validate(full=True)
        path = pc.struct_field(column, "path")
        if pc.any(pc.and_(pc.is_valid(column), pc.is_null(path))).as_py():
            raise pa.ArrowInvalid(f"a {name} action without path")
    return table


def is_whole(data: bytes) -> bool:
    """Whether a file ends with a whole line: one of a writer that crashed does not, nor one that was truncated."""
    return data[-4096:].rstrip().endswith(b"}")


def cut_off(where: str) -> CorruptLogFileError:
    """The error for a file that is not whole."""
    return CorruptLogFileError(
        f"{where} is empty or cut off: its writer crashed or the file was truncated. Restore it from a "
        "backup; if it is the newest version and was never whole, delete it"
    )


def is_blank(data: bytes) -> bool:
    """Whether a file holds nothing but white space, without copying it."""
    return len(data) < 4096 and not data.strip()


def _parse_slowly(data: bytes, schema: pa.Schema, path: str) -> pa.Table:
    import pyarrow as pa

    rows = []
    for number, action in iterate_actions(data, path):
        row = {}
        for name in schema.names:
            body = action.get(name)
            if body is None:
                continue
            where = f"line {number} of {path}"
            if not isinstance(body, dict) or not isinstance(body.get("path"), str):
                raise CorruptLogFileError(f"{where} holds a {name} action without a path")
            row[name] = _conform(body, schema.field(name).type, f"{name} in {where}")
        rows.append(row)
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise CorruptLogFileError(f"{path} holds values that do not fit the protocol: {error}") from error


def _conform(value: Any, wanted: pa.DataType, where: str) -> Any:
    """A JSON value as the wanted type, with the leniency of Spark's JSON reader, or an error."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_struct(wanted):
        if not isinstance(value, dict):
            raise CorruptLogFileError(f"{where}: expected an object, found {value!r:.80}")
        return {f.name: _conform(value.get(f.name), f.type, f"{where}.{f.name}") for f in wanted}
    if pa.types.is_string(wanted):
        if isinstance(value, str):
            return value
        return json.dumps(value)
    if pa.types.is_boolean(wanted):
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return value == "true"
    elif pa.types.is_integer(wanted) and not isinstance(value, bool):
        try:
            number = int(value)
            if number == float(value):
                return number
        except (TypeError, ValueError, OverflowError):
            pass
    raise CorruptLogFileError(f"{where}: expected {wanted}, found {value!r:.80}")


def iterate_actions(data: bytes, path: str) -> Iterator[tuple[int, Action]]:
    """The actions of one file as (line number from 1, object), blank lines left out.

    Raises
    ------
    CorruptLogFileError
        A line is not UTF-8, or not one JSON object; the message names the file and line.
    """
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield number, parse_line(line, number, path)


def parse_line(line: bytes, number: int, path: str) -> Action:
    """The action of a line.

    Raises
    ------
    CorruptLogFileError
        It is not UTF-8, or not one JSON object; the message names the file and line.
    """
    try:
        action = parse_json(line)
    except ValueError as error:
        raise CorruptLogFileError(
            f"line {number} of {path} is not valid JSON ({error}); the file is truncated or damaged: "
            "restore it from a backup, or read an older version"
        ) from error
    if not isinstance(action, dict):
        raise CorruptLogFileError(f"line {number} of {path} is not a JSON object: {line[:80]!r}")
    return cast("Action", action)


def iterate_bodies(data: bytes, path: str, *names: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The actions of one file that have one of the names, one by one and in order, as (name, body).

    Raises
    ------
    CorruptLogFileError
        One is damaged; the message names the file and line.
    """
    for number, action in iterate_actions(data, path):
        for name, body in action.items():
            if name in names and body is not None:
                yield name, conform(name, body, f"line {number} of {path}")


def find_actions(data: bytes, names: Sequence[str], path: str) -> list[Action]:
    """The lines of a file that hold one of the named top-level actions, parsed, in file order.

    One pass of a regular expression steps over the lines of other actions by their first key, which is
    all but a few of them; only what is left is parsed.
    """
    first, following = _other_lines(tuple(names))
    starts = [0] if first.match(data) else []
    starts += [match.end() for match in following.finditer(data)]
    found = []
    for start in starts:
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)]
        if not line.strip():
            continue
        number = data.count(b"\n", 0, start) + 1
        action = parse_line(line, number, path)
        where = f"line {number} of {path}"
        bodies = {
            name: conform(name, body, where)
            for name, body in action.items()
            if name in names and body is not None
        }
        if bodies:
            found.append(cast("Action", {**action, **bodies}))
    return found


@functools.lru_cache(maxsize=16)
def _other_lines(names: tuple[str, ...]) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Patterns for a first and a following line whose first key is none of the actions not wanted.

    Two patterns, since only one that begins with the line feed is searched at memory speed.
    """
    others = "|".join(a for a in (*FILE_ACTIONS, "commitInfo") if a not in names)
    unwanted = rf'(?!\s*\{{\s*"(?:{others})"\s*:)'.encode()
    return re.compile(unwanted), re.compile(b"\n" + unwanted)


# ---------------------------------------------------------------- bodies, as the protocol has them


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_map_of_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        each is None or isinstance(each, str) for each in value.values()
    )


# By action and field: what a value other than null must be. `!` marks fields that must be there.
_VECTOR: dict[str, Callable[[Any], bool]] = {
    "storageType!": _is_text, "pathOrInlineDv!": _is_text, "offset": is_long, "sizeInBytes!": is_long,
    "cardinality": is_long,
}  # fmt: skip
_FILE: dict[str, Callable[[Any], bool]] = {
    "path!": _is_text, "partitionValues": _is_map_of_texts, "size": is_long, "modificationTime": is_long,
    "dataChange": _is_flag, "stats": _is_text, "tags": _is_map_of_texts, "deletionVector": _is_map,
    "baseRowId": is_long, "defaultRowCommitVersion": is_long, "clusteringProvider": _is_text,
    "deletionTimestamp": is_long, "extendedFileMetadata": _is_flag,
}  # fmt: skip
_FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(FILE_ACTIONS, _FILE),
    "txn": {"appId!": _is_text, "version!": is_long, "lastUpdated": is_long},
    "domainMetadata": {"domain!": _is_text, "configuration": _is_text, "removed": _is_flag},
    "sidecar": {"path!": _is_text, "sizeInBytes": is_long, "modificationTime": is_long},
    "checkpointMetadata": {"version": is_long},
}
# What of a `commitInfo` others look into. It is no part of the state, and whoever commits may put anything there.
_OF_PROVENANCE: dict[str, Callable[[Any], bool]] = {
    "operationParameters": _is_map, "operationMetrics": _is_map, "tags": _is_map, "job": _is_map, "notebook": _is_map,
    "application": _is_map,
}  # fmt: skip


def conform(name: str, body: Any, where: str) -> Mapping[str, Any]:
    """The body of an action, once it is what the protocol says.

    Parameters
    ----------
    name
        Of the action. Those of `protocol` and `metaData` are looked at by `Protocol` and `Metadata`.
    where
        Its file and line, for messages.

    Returns
    -------
    dict
        The body; of a `commitInfo` without what is not of its kind.

    Raises
    ------
    CorruptLogFileError
        It is no object, lacks a field that it must have, or has one of another type.
    """
    if not isinstance(body, Mapping):
        raise CorruptLogFileError(f"{where} holds a {name} that is no object: {body!r:.80}")
    if name == "commitInfo":
        wrong = [key for key, is_right in _OF_PROVENANCE.items() if key in body and not is_right(body[key])]
        return {key: value for key, value in body.items() if key not in wrong} if wrong else body
    _check(name, body, _FIELDS.get(name, {}), where)
    if name in FILE_ACTIONS and body.get("deletionVector") is not None:
        _check(f"deletionVector of {name}", body["deletionVector"], _VECTOR, where)
    return body


def _check(
    name: str, body: Mapping[str, Any], fields: Mapping[str, Callable[[Any], bool]], where: str
) -> None:
    for field, is_right in fields.items():
        key = field.removesuffix("!")
        value = body.get(key)
        if value is None and key != field:
            raise CorruptLogFileError(f"{where} holds a {name} without {key}")
        if value is not None and not is_right(value):
            raise CorruptLogFileError(f"{where} holds a {name} whose {key} is {value!r:.80}")
