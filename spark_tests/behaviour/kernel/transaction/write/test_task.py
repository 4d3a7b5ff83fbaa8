"""Tasks write for as long as somebody waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.transaction.write.intent import APPEND, batch_intent, find_target
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.kernel.transaction.write.task import WriteSign, write_rows

FOLDER = "6f9619ff-8b86-4011-b42d-00c04fc964ff"
SIZES = {"id": 40, "p": 4, "q": 3}
ROWS = pa.table({name: pa.array([n % size for n in range(40)], pa.int64()) for name, size in SIZES.items()})


def plan(path: Path, by: str) -> WritePlan:
    intent = batch_intent({"path": str(path), **({"partitionBy": by} if by else {})}, APPEND)
    return plan_write(find_target(intent), schema_from_arrow(ROWS.schema))


def files(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


@pytest.mark.parametrize("by", ["", "p", "p,q"])
def test_what_is_written_after_the_write_was_given_up_is_deleted_with_its_folders(
    tmp_path: Path, by: str
) -> None:
    planned = plan(tmp_path, by)
    sign = WriteSign(planned.storage, f"{FOLDER}/waiting")
    sign.put()

    def rows_that_fail_elsewhere() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        sign.remove()

    with pytest.raises(StorageError, match="the write was given up"):
        write_rows(planned, rows_that_fail_elsewhere(), folder=FOLDER, sign=sign)
    assert files(tmp_path) == []


def test_what_others_have_written_stays(tmp_path: Path) -> None:
    planned = plan(tmp_path, "p")
    sign = WriteSign(planned.storage, f"{FOLDER}/waiting")
    sign.put()
    done = write_rows(planned, ROWS.to_batches(), 0, folder=FOLDER, sign=sign)

    def late_rows() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        sign.remove()

    with pytest.raises(StorageError, match="the write was given up"):
        write_rows(planned, late_rows(), 1, folder=FOLDER, sign=sign)
    assert {file for file in files(tmp_path) if file.endswith(".parquet")} == {
        add["path"] for add in done.adds
    }


def test_without_the_sign_nothing_is_begun(tmp_path: Path) -> None:
    planned = plan(tmp_path, "p")
    with pytest.raises(StorageError, match="one and the same folder on every machine"):
        write_rows(
            planned, ROWS.to_batches(), folder=FOLDER, sign=WriteSign(planned.storage, f"{FOLDER}/waiting")
        )
    assert files(tmp_path) == []
