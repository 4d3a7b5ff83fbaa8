"""Tables with rows, with or without deletion vectors: plain Python and pyarrow, no JVM."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.log_tables import (
    COLUMNS,
    CREATED_MS,
    commit_info,
    metadata,
    protocol,
    stable_uuid,
    write_commit,
)


def write_data_table(root: Path, rows: int, files: int, deleted_share: float = 0.0) -> Path:
    """Write a table of `rows` rows in `files` files, `id` rising from file to file.

    With a `deleted_share` above zero every file gets a deletion vector that hides about that share of its
    rows, spread evenly; all vectors lie in one file, as delta-spark leaves them after a DELETE.
    """
    log = root / "_delta_log"
    log.mkdir(parents=True)
    features = ["deletionVectors"] if deleted_share else []
    lines = [commit_info(0), json.dumps({"protocol": protocol(features)})]
    lines.append(json.dumps({"metaData": metadata([(n, k) for n, k, _ in COLUMNS], [])}))
    vectors = VectorFile(root) if deleted_share else None
    bounds = [rows * n // files for n in range(files + 1)]
    for n in range(files):
        name = f"part-{n:05d}-{stable_uuid(n, salt=3)}.c000.snappy.parquet"
        table = rows_between(bounds[n], bounds[n + 1])
        pq.write_table(table, root / name, compression="snappy", row_group_size=1_000_000)
        add: dict[str, Any] = {"path": name, "partitionValues": {}, "size": (root / name).stat().st_size}
        add |= {"modificationTime": CREATED_MS, "dataChange": True, "stats": _row_stats(table, bool(vectors))}
        if vectors:
            step = max(1, round(1 / deleted_share))
            add["deletionVector"] = vectors.append(np.arange(0, table.num_rows, step, dtype=np.uint32))
        lines.append(json.dumps({"add": add}))
    if vectors:
        vectors.close()
    write_commit(log, 0, lines)
    return root


def rows_between(start: int, stop: int) -> pa.Table:
    """The rows with these ids, `stop` excluded."""
    ids = np.arange(start, stop, dtype=np.int64)
    chance = np.random.default_rng(start)
    cities = pa.array(["Aachen", "Berlin", "Gdansk", "Lyon", "Nantes", "Porto", "Torun", "Zwolle"])
    minutes = ids * 60_000_000 + 1_735_689_600_000_000
    columns = [
        pa.array(ids),
        pa.array(minutes, pa.timestamp("us", tz="UTC")),
        pa.array(np.char.add("user-", chance.integers(0, 1_000_000, len(ids)).astype(str)).tolist()),
        pa.DictionaryArray.from_arrays(pa.array(chance.integers(0, 8, len(ids))), cities).cast(pa.string()),
        pa.array(chance.random(len(ids)) * 1000),
        pa.array(chance.integers(0, 10_000_000, len(ids)), pa.int64())
        .cast(pa.decimal128(21, 2))
        .cast(pa.decimal128(10, 2)),
        pa.array(chance.integers(1, 100, len(ids)), pa.int32()),
        pa.array((ids % 3650).astype(np.int32), pa.int32()).cast(pa.date32()),
    ]
    return pa.table(columns, names=[name for name, _, _ in COLUMNS])


def _row_stats(table: pa.Table, has_vector: bool) -> str:
    ids = table.column("id")
    record = {
        "numRecords": table.num_rows,
        "minValues": {"id": ids[0].as_py()},
        "maxValues": {"id": ids[-1].as_py()},
        "nullCount": {"id": 0},
        "tightBounds": not has_vector,
    }
    return json.dumps(record)


class VectorFile:
    """A deletion vector file in the making. Source: PROTOCOL.md, Deletion Vector Format."""

    def __init__(self, root: Path) -> None:
        number = uuid.UUID(stable_uuid(0, salt=5))
        self._id = z85(number.bytes)
        self._path = root / f"deletion_vector_{number}.bin"
        self._parts = [b"\x01"]
        self._offset = 1

    def __enter__(self) -> VectorFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, positions: np.ndarray[Any, np.dtype[np.uint32]]) -> dict[str, Any]:
        from pyroaring import BitMap

        bitmap = BitMap(positions.tolist())
        bitmap.run_optimize()
        payload = struct.pack("<IQI", 1681511377, 1, 0) + bitmap.serialize()
        block = struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
        descriptor = {
            "storageType": "u",
            "pathOrInlineDv": self._id,
            "offset": self._offset,
            "sizeInBytes": len(payload),
            "cardinality": len(positions),
        }
        self._parts.append(block)
        self._offset += len(block)
        return descriptor

    def close(self) -> None:
        self._path.write_bytes(b"".join(self._parts))


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> str:
    """Encode bytes, a multiple of four of them, as Z85: how descriptors spell the UUID of a vector file."""
    return "".join(_z85_word(word) for (word,) in struct.iter_unpack(">I", data))


def _z85_word(word: int) -> str:
    return "".join(_Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
