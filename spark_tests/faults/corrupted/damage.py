"""Ways to damage the files of a table, at random: values, bytes, names, types, and what is no file at all."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_ds.kernel.format.properties import PROPERTIES

WORDS = [
    "", "null", "NaN", "-Infinity", "1e400", "true", "-1", "0", "9" * 19, "9" * 30, "9" * 400, "..", "../x", "/", "%",
    "%ff", "s3://bucket/x", "file:///etc", "a" * 3000, "\x00", "é", "10000-01-01", "-5877641-06-23", "2024-13-45",
    "{}", "[]", "[" * 3000, '{"a":' * 3000, "decimal(39,2)", "decimal(38,38)", "map", "struct", "u", "p", "i", "id",
    "\ud800", "\udfff x", "\x1b[2J", "1" + "0" * 18, "-1" + "0" * 18, "interval 1" + "0" * 18 + " days", "999999999",
    "interval -1 days", "file:///dev/zero", "/dev/full", "0 bytes", "1.5", "id >", "id = 'x'", "name", "v2", "classic",
]  # fmt: skip
NUMBERS = [-1, 0, 1, 2**31, -(2**31), 2**53, 10**18, -(10**18), 2**63 - 1, 2**63, -(2**63) - 1, 10**30]


def _value(random: Random) -> Any:
    """Any value of JSON."""
    return random.choice(
        [
            lambda: None,
            lambda: random.random() < 0.5,
            lambda: random.randint(-(2**70), 2**70),
            lambda: random.choice(NUMBERS),
            lambda: random.choice([0.5, -1e300, 1e400, float("nan")]),
            lambda: random.choice(WORDS),
            lambda: [random.choice(WORDS) for _ in range(random.randint(0, 2))],
            lambda: {random.choice(WORDS): random.choice(WORDS) for _ in range(random.randint(0, 2))},
        ]
    )()


def files_below(path: Path, *patterns: str) -> list[Path]:
    """The files of a table that have one of some names, in order."""
    found = {file for pattern in patterns or ("*",) for file in path.rglob(pattern)}
    return sorted((file for file in found if file.is_file()), key=lambda file: str(file.relative_to(path)))


def copied(path: Path, target: Path) -> Path:
    """A copy of a table, with links, pipes and all."""
    subprocess.run(["cp", "-a", str(path), str(target)], check=True)
    return target


def json_files(path: Path) -> list[Path]:
    """The files of a log that are JSON: commits, compactions, manifests, checksums, the hint."""
    return files_below(path / "_delta_log", "*.json", "*.crc", "_last_checkpoint")


def read_lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def write_lines(file: Path, lines: list[Any]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def mutate(node: Any, random: Random) -> None:
    """Change one value somewhere in an action, also inside JSON that stands in a text."""
    key = random.choice(sorted(node) if isinstance(node, dict) else range(len(node)))
    value = node[key]
    if isinstance(value, str) and value[:2] in ('{"', "[[") and len(value) < 5000 and random.randint(0, 3):
        inner = json.loads(value)
        if inner:
            mutate(inner, random)
            node[key] = json.dumps(inner)
            return
    if isinstance(value, (dict, list)) and value and random.randint(0, 5):
        mutate(value, random)
    elif isinstance(node, dict) and random.randint(0, 4) == 0:
        del node[key]
    else:
        node[key] = _value(random)


def values(path: Path, random: Random) -> None:
    """Values of a JSON file that make no sense."""
    file = random.choice(json_files(path))
    lines = read_lines(file)
    for _ in range(random.randint(1, 2)):
        mutate(random.choice([line for line in lines if line] or [{"x": 1}]), random)
    write_lines(file, lines)


def values_without_checkpoint(path: Path, random: Random) -> None:
    """Values of a commit that make no sense, and nothing else that says the same."""
    for file in files_below(path / "_delta_log", "*checkpoint*", "*.crc", "*.compacted.json"):
        file.unlink()
    values(path, random)


def lines(path: Path, random: Random) -> None:
    """Lines of a JSON file that are gone, doubled, or in another order."""
    file = random.choice(json_files(path))
    found = file.read_bytes().splitlines(keepends=True)
    how = random.choice(["gone", "twice", "order", "blank", "foreign"])
    at = random.randint(0, len(found) - 1) if found else 0
    if how == "gone":
        del found[at : at + 1]
    elif how == "twice":
        found.insert(at, found[at] if found else b"")
    elif how == "order":
        found.reverse()
    elif how == "blank":
        found.insert(at, b"\n")
    else:
        other = random.choice(json_files(path))
        found += other.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(found))


def some_bytes(path: Path, random: Random) -> None:
    """Bytes of any file that make no sense; the ends of Parquet files say most."""
    file = random.choice(files_below(path))
    content = bytearray(file.read_bytes())
    for _ in range(random.randint(1, 3)):
        from_end = random.random() < 0.5
        at = random.randint(0, min(400, len(content)) if from_end else len(content))
        at = len(content) - at if from_end else at
        content[at : at + random.randint(0, 4)] = random.randbytes(random.randint(0, 4))
    file.write_bytes(content)


def cut(path: Path, random: Random) -> None:
    """A file that ends early."""
    file = random.choice(files_below(path))
    content = file.read_bytes()
    file.write_bytes(content[: random.randint(0, len(content))])


def gone(path: Path, random: Random) -> None:
    """A file that is not there."""
    random.choice(files_below(path)).unlink()


def names(path: Path, random: Random) -> None:
    """A file under another file's name."""
    log = path / "_delta_log"
    file = random.choice(files_below(log))
    number = random.choice([0, 1, 3, 4, 5, 6, 7, 10**12, 2**63, 10**18, 10**20 - 1])
    suffix = random.choice(
        [
            "json", "crc", "checkpoint.parquet", f"{number:020d}.compacted.json", "checkpoint.a.json",
            "checkpoint.a.parquet", "checkpoint.0000000001.0000000002.parquet",
            "checkpoint.9999999999.9999999999.parquet",
        ]
    )  # fmt: skip
    target = log / f"{number:020d}.{suffix}"
    if random.random() < 0.5:
        os.replace(file, target)
    elif file != target:
        shutil.copy(file, target)


def types(path: Path, random: Random) -> None:
    """A Parquet file of a checkpoint with another type somewhere inside, of its own or a hostile value."""
    candidates = files_below(path / "_delta_log", "*.parquet")
    if not candidates:
        return values(path, random)
    file = random.choice(candidates)
    table = pq.read_table(file)
    column = random.choice(table.column_names)
    changed = _retyped(table[column], random)
    pq.write_table(table.set_column(table.column_names.index(column), column, changed), file)
    return None


_OF_OTHER_TYPES = [
    7, -1, 10**18, "x", "../x", "\x1b[2J", b"\xff\xee", 1.5, True, [1], ["p"], {"a": 1}, [("k", "v")], None,
]  # fmt: skip


def _retyped(array: pa.ChunkedArray, random: Random) -> pa.ChunkedArray:
    found = array.to_pylist()
    kind = array.type
    if pa.types.is_struct(kind) and random.randint(0, 4):
        field = random.choice(list(kind))
        inner = _retyped(
            pa.chunked_array([pa.array([row and row[field.name] for row in found], field.type)]), random
        )
        children = [
            inner.combine_chunks() if f.name == field.name
            else pa.array([row and row[f.name] for row in found], f.type)
            for f in kind
        ]  # fmt: skip
        mask = pa.array([row is None for row in found])
        return pa.chunked_array([pa.StructArray.from_arrays(children, [f.name for f in kind], mask=mask)])
    if pa.types.is_integer(kind) and (random.random() < 0.5):
        number = random.choice([n for n in NUMBERS if -(2**31) <= n < 2**31])
        return pa.chunked_array([pa.array([number] * len(found), kind)])
    if pa.types.is_string(kind) and (random.random() < 0.5):
        text = random.choice([word for word in WORDS if word.isprintable()])
        return pa.chunked_array([pa.array([text] * len(found), kind)])
    value = random.choice(_OF_OTHER_TYPES)
    changed = [None if row is None and (random.random() < 0.5) else value for row in found]
    return pa.chunked_array(
        [pa.array(changed, pa.map_(pa.string(), pa.string()) if value == [("k", "v")] else None)]
    )


def other_data(path: Path, random: Random) -> None:
    """A data file with columns of other types, or of another table."""
    file = random.choice(files_below(path, "part*.parquet"))
    table = pq.read_table(file)
    name = random.choice(table.column_names)
    changed = _retyped(table[name], random)
    pq.write_table(table.set_column(table.column_names.index(name), name, changed), file)


def no_file(path: Path, random: Random) -> None:
    """What is no file, in the place of one."""
    file = random.choice(files_below(path))
    put_in_place(file, random.choice(NO_FILES))


NO_FILES = (
    "pipe",
    "socket",
    "folder",
    "link to a device",
    "link to itself",
    "link to nothing",
    "link to a pipe",
)


def put_in_place(file: Path, kind: str) -> None:
    """Put what is no file in the place of one, or where there is none yet."""
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        # Names of sockets are short.
        before = os.getcwd()
        os.chdir(file.parent)
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind("s")
            os.rename("s", file.name)
        finally:
            os.chdir(before)
    elif kind == "folder":
        file.mkdir()
    elif kind == "link to a device":
        file.symlink_to("/dev/zero")
    elif kind == "link to itself":
        file.symlink_to(file)
    elif kind == "link to nothing":
        file.symlink_to("nowhere")
    else:
        os.mkfifo(file.parent / ".a pipe")
        file.symlink_to(".a pipe")


def properties(path: Path, random: Random) -> None:
    """Values of properties that make no sense, or much too much."""
    for file in files_below(path / "_delta_log", "*checkpoint*", "*.crc", "*.compacted.json"):
        file.unlink()
    known = sorted(each.name for each in PROPERTIES.values())
    changed = {
        random.choice(known): random.choice([*WORDS, *map(str, NUMBERS), "true", "false"])
        for _ in range(random.randint(1, 3))
    }
    for file in json_files(path):
        found = read_lines(file)
        for line in found:
            if isinstance(line, dict) and isinstance(line.get("metaData"), dict):
                line["metaData"]["configuration"] = {**line["metaData"]["configuration"], **changed}
        write_lines(file, found)


WAYS: dict[str, Callable[[Path, Random], None]] = {
    function.__name__: function
    for function in (
        values, values_without_checkpoint, lines, some_bytes, cut, gone, names, types, other_data, no_file, properties,
    )
}  # fmt: skip
