"""Tables that are only a log, so that 300,000 files cost no data: plain Python and pyarrow, no JVM.

What is written looks like delta-spark's own: stats of eight columns in every add action, checkpoints with
`stats`, `stats_parsed` and `partitionValues_parsed`. The same arguments give the same table.
"""

from __future__ import annotations

import datetime
import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_FILE = 1000
DAYS = 365
FIRST_DAY = datetime.date(2025, 1, 1)
CREATED_MS = 1_760_000_000_000
SIDECAR_ROWS = 50_000

# name, Delta type, Arrow type of its statistics in a checkpoint
COLUMNS: list[tuple[str, str, pa.DataType]] = [
    ("id", "long", pa.int64()),
    ("event_time", "timestamp", pa.timestamp("us", tz="UTC")),
    ("user", "string", pa.string()),
    ("city", "string", pa.string()),
    ("amount", "double", pa.float64()),
    ("price", "decimal(10,2)", pa.decimal128(10, 2)),
    ("quantity", "integer", pa.int32()),
    ("sold_on", "date", pa.date32()),
]
PARTITION = "day"


@dataclass(frozen=True)
class FileRange:
    """The files numbered start, start + 1, ... below stop; a file's content follows from its number alone."""

    start: int
    stop: int


def write_log_table(root: Path, layout: str, files: int, commits: int = 100, tail: int = 1000) -> Path:
    """Write a table of `files` live files that is only a log.

    Parameters
    ----------
    layout
        `json`: `commits` commits and no checkpoint. `v1`: one classic checkpoint. `v2`: a V2 checkpoint with
        sidecars of 50,000 files. `v1_tail`: the classic checkpoint and `tail` commits of eleven added files
        and one removed file after it.
    """
    log = root / "_delta_log"
    log.mkdir(parents=True)
    features = ["v2Checkpoint"] if layout == "v2" else []
    if layout == "json":
        _write_commits(log, files, commits)
        return root
    in_checkpoint = files - 10 * tail if layout == "v1_tail" else files
    write_commit(log, 1, [commit_info(1)])
    if layout == "v2":
        _write_v2_checkpoint(log, 1, FileRange(0, in_checkpoint), features)
    else:
        _write_v1_checkpoint(log, 1, FileRange(0, in_checkpoint))
    if layout == "v1_tail":
        _write_tail(log, 2, in_checkpoint, tail)
    return root


def _write_commits(log: Path, files: int, commits: int) -> None:
    """`commits` commits; each but the first also removes one file in fifty of the commit before it."""
    commits = min(commits, files)
    bounds = [files * n // commits for n in range(commits + 1)]
    for version in range(commits):
        added = FileRange(bounds[version], bounds[version + 1])
        lines = [commit_info(version)]
        if version == 0:
            lines += header_lines([])
        lines += add_lines(added)
        # The doomed are extra files of this commit, gone with the next one: `files` stay live in the end.
        doomed = (added.stop - added.start) // 50
        if version + 1 < commits:
            lines += add_lines(_doomed(files, version, doomed))
        if version:
            before = (bounds[version] - bounds[version - 1]) // 50
            lines += remove_lines(_doomed(files, version - 1, before))
        write_commit(log, version, lines)


def _doomed(files: int, version: int, count: int) -> FileRange:
    start = files + version * (files // 50 + 1)
    return FileRange(start, start + count)


def _write_tail(log: Path, version: int, first: int, commits: int) -> None:
    for n in range(commits):
        start = first + 11 * n
        lines = [commit_info(version + n), *add_lines(FileRange(start, start + 11))]
        removed = start - 1 if n else 0
        lines += remove_lines(FileRange(removed, removed + 1))
        write_commit(log, version + n, lines)


def write_commit(log: Path, version: int, lines: Sequence[str]) -> None:
    (log / f"{version:020d}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_v1_checkpoint(log: Path, version: int, files: FileRange) -> None:
    table = pa.concat_tables([_header_table([]), add_table(files)], promote_options="default")
    name = f"{version:020d}.checkpoint.parquet"
    pq.write_table(table, log / name, compression="snappy", row_group_size=100_000)
    hint = {"version": version, "size": table.num_rows, "numOfAddFiles": files.stop - files.start}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _write_v2_checkpoint(log: Path, version: int, files: FileRange, features: Sequence[str]) -> None:
    sidecars = log / "_sidecars"
    sidecars.mkdir()
    rows = []
    for start in range(files.start, files.stop, SIDECAR_ROWS):
        part = FileRange(start, min(start + SIDECAR_ROWS, files.stop))
        name = f"{stable_uuid(start, salt=7)}.parquet"
        pq.write_table(add_table(part), sidecars / name, compression="snappy")
        size = (sidecars / name).stat().st_size
        rows.append({"path": name, "sizeInBytes": size, "modificationTime": CREATED_MS})
    lines = [json.dumps({"checkpointMetadata": {"version": version}}), *header_lines(features)]
    lines += [json.dumps({"sidecar": row}) for row in rows]
    name = f"{version:020d}.checkpoint.{stable_uuid(version, salt=8)}.json"
    (log / name).write_text("\n".join(lines) + "\n")
    (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": len(lines)}))


# ---------------------------------------------------------------- actions


def add_lines(files: FileRange) -> list[str]:
    """The add actions of the files as lines of a commit."""
    return [
        f'{{"add":{{"path":"{_path(n)}","partitionValues":{{"day":"{_day(n)}"}},"size":{_size(n)},'
        f'"modificationTime":{CREATED_MS + n},"dataChange":true,"stats":{json.dumps(_stats(n))}}}}}'
        for n in range(files.start, files.stop)
    ]


def remove_lines(files: FileRange) -> list[str]:
    """The remove actions of the files as lines of a commit."""
    return [
        f'{{"remove":{{"path":"{_path(n)}","deletionTimestamp":{CREATED_MS + n},"dataChange":true,'
        f'"extendedFileMetadata":true,"partitionValues":{{"day":"{_day(n)}"}},"size":{_size(n)}}}}}'
        for n in range(files.start, files.stop)
    ]


def add_table(files: FileRange) -> pa.Table:
    """The add actions of the files as rows of a checkpoint: one struct column `add`."""
    parts = [
        _add_struct(range(start, min(start + SIDECAR_ROWS, files.stop)))
        for start in range(files.start, files.stop, SIDECAR_ROWS)
    ]
    return pa.table({"add": pa.chunked_array(parts)})


def _add_struct(numbers: range) -> pa.StructArray:
    count = len(numbers)
    days = [_day(n) for n in numbers]
    columns = {
        "path": pa.array([_path(n) for n in numbers]),
        "partitionValues": pa.MapArray.from_arrays(
            pa.array(range(count + 1), pa.int32()), pa.array([PARTITION] * count), pa.array(days)
        ),
        "size": pa.array([_size(n) for n in numbers], pa.int64()),
        "modificationTime": pa.array([CREATED_MS + n for n in numbers], pa.int64()),
        "dataChange": pa.array([False] * count),
        "stats": pa.array([_stats(n) for n in numbers]),
        "stats_parsed": _parsed_stats(numbers),
        "partitionValues_parsed": pa.StructArray.from_arrays(
            [pa.array([datetime.date.fromisoformat(day) for day in days])], [PARTITION]
        ),
    }
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _parsed_stats(numbers: range) -> pa.StructArray:
    lowest, highest = zip(*(_bounds(n) for n in numbers), strict=True)
    names = [name for name, _, _ in COLUMNS]
    count = len(numbers)

    def struct_of(rows: Sequence[tuple[Any, ...]]) -> pa.StructArray:
        arrays = [
            pa.array(values, kind)
            for values, (_, _, kind) in zip(zip(*rows, strict=True), COLUMNS, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, names)

    zeros = pa.StructArray.from_arrays([pa.array([0] * count, pa.int64())] * len(names), names)
    return pa.StructArray.from_arrays(
        [pa.array([ROWS_PER_FILE] * count, pa.int64()), struct_of(lowest), struct_of(highest), zeros],
        ["numRecords", "minValues", "maxValues", "nullCount"],
    )


def _bounds(n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    first = n * ROWS_PER_FILE
    start = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(minutes=n)
    day = FIRST_DAY + datetime.timedelta(days=n % DAYS)
    price = Decimal(n % 900).scaleb(-2)
    lowest = (first, start, f"user-{n:08d}", "Aachen", 0.25 + n, price, 1, day)
    end = start + datetime.timedelta(seconds=59)
    last = first + ROWS_PER_FILE - 1
    highest = (last, end, f"user-{n + 9:08d}", "Zwolle", 99.75 + n, price + 90, 99, day)
    return lowest, highest


def _stats(n: int) -> str:
    lowest, highest = _bounds(n)
    names = [name for name, _, _ in COLUMNS]
    record = {
        "numRecords": ROWS_PER_FILE,
        "minValues": dict(zip(names, map(stat_json, lowest), strict=True)),
        "maxValues": dict(zip(names, map(stat_json, highest), strict=True)),
        "nullCount": dict.fromkeys(names, 0),
    }
    return json.dumps(record, separators=(",", ":"))


def stat_json(value: Any) -> Any:
    """A value as statistics spell it."""
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _path(n: int) -> str:
    return f"day={_day(n)}/part-{n % 200:05d}-{stable_uuid(n)}.c000.snappy.parquet"


def _day(n: int) -> str:
    return (FIRST_DAY + datetime.timedelta(days=n % DAYS)).isoformat()


def _size(n: int) -> int:
    return 30_000 + n % 5000


def stable_uuid(n: int, salt: int = 0) -> str:
    return str(uuid.UUID(int=random.Random(n * 16 + salt).getrandbits(128)))


# ---------------------------------------------------------------- protocol and metadata


def commit_info(version: int) -> str:
    return json.dumps(
        {
            "commitInfo": {
                "timestamp": CREATED_MS + version * 1000,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
            }
        }
    )


def protocol(features: Sequence[str]) -> dict[str, Any]:
    if not features:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    names = list(features)
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}


def metadata(fields: Sequence[tuple[str, str]], partitions: Sequence[str]) -> dict[str, Any]:
    schema = {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields],
    }
    return {
        "id": stable_uuid(1, salt=9),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": list(partitions),
        "configuration": {},
        "createdTime": CREATED_MS,
    }


def log_fields() -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, _ in COLUMNS] + [(PARTITION, "date")]


def metadata_line(properties: Mapping[str, str]) -> str:
    """The line of a commit that gives the table properties; all else stays as it is."""
    return json.dumps(
        {"metaData": {**metadata(log_fields(), [PARTITION]), "configuration": dict(properties)}}
    )


def header_lines(features: Sequence[str]) -> list[str]:
    """Protocol and metadata as lines of a commit."""
    return [
        json.dumps({"protocol": protocol(features)}),
        json.dumps({"metaData": metadata(log_fields(), [PARTITION])}),
    ]


def _header_table(features: Sequence[str]) -> pa.Table:
    action = metadata(log_fields(), [PARTITION])
    text_map = pa.map_(pa.string(), pa.string())
    kind = pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", text_map)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", text_map),
            ("createdTime", pa.int64()),
        ]
    )
    action["format"]["options"] = []
    action["configuration"] = []
    versions = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    return pa.table(
        {
            "protocol": pa.array([protocol(features), None], versions),
            "metaData": pa.array([None, action], kind),
        }
    )
