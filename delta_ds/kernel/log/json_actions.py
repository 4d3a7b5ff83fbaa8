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
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from delta_ds.events.log import LOG_FILE_PARSED_SLOWLY
from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.actions import Action
from delta_ds.kernel.json_text import parse_json
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
            yield number, _parse_line(line, number, path)


def _parse_line(line: bytes, number: int, path: str) -> Action:
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
        action = _parse_line(line, number, path)
        bodies = {name: body for name, body in action.items() if name in names and body is not None}
        for name, body in bodies.items():
            if not isinstance(body, Mapping):
                raise CorruptLogFileError(
                    f"line {number} of {path} holds a {name} that is no object: {body!r:.80}"
                )
        if bodies:
            found.append(action)
    return found


@functools.lru_cache(maxsize=16)
def _other_lines(names: tuple[str, ...]) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Patterns for a first and a following line whose first key is none of the actions not wanted.

    Two patterns, since only one that begins with the line feed is searched at memory speed.
    """
    others = "|".join(a for a in (*FILE_ACTIONS, "commitInfo") if a not in names)
    unwanted = rf'(?!\s*\{{\s*"(?:{others})"\s*:)'.encode()
    return re.compile(unwanted), re.compile(b"\n" + unwanted)
