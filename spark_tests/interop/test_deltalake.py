"""deltalake on tables that the kernel has written: the same rows, or a refusal that names the feature; no JVM."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_ds import DeltaLog
from spark_tests.interop.catalogue import CASES
from spark_tests.interop.written import Written
from spark_tests.yardsticks.compare import difference

pytestmark = pytest.mark.interop

Tables = Callable[[str], Written]


@pytest.fixture(scope="module")
def deltalake() -> ModuleType:
    return pytest.importorskip("deltalake", reason="deltalake is not installed here: run make test-interop")


def read(deltalake: ModuleType, path: object, schema: pa.Schema) -> pa.Table:
    """All rows, by the reader that goes through deltalake's kernel.

    The other one, `to_pyarrow_table`, takes no notice of column mapping in tables without a list of features.
    """
    table = deltalake.DeltaTable(str(path))
    query = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return pa.table(query.read_all()).cast(schema)


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.deltalake is None])
def test_latest_version_has_the_rows_that_were_written(
    name: str, written: Tables, deltalake: ModuleType
) -> None:
    table = written(name)
    wanted = table.expected(table.log.snapshot().version)
    assert difference(read(deltalake, table.path, wanted.schema), wanted) is None


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.deltalake is not None])
def test_feature_that_deltalake_lacks_is_refused_by_name(
    name: str, written: Tables, deltalake: ModuleType
) -> None:
    table = written(name)
    with pytest.raises(Exception, match=str(CASES[name].deltalake)):
        read(deltalake, table.path, table.expected(table.log.snapshot().version).schema)


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.deltalake is None])
def test_both_go_on_where_the_other_stopped(
    name: str, written: Tables, deltalake: ModuleType, tmp_path: Path
) -> None:
    case = CASES[name]
    path = tmp_path / name
    shutil.copytree(written(name).path, path)
    log = DeltaLog(path)
    rows = log.snapshot().scan().to_arrow()
    if case.deltalake_writes is not None:
        with pytest.raises(Exception, match=case.deltalake_writes):
            deltalake.write_deltalake(str(path), rows, mode="append")
        return
    deltalake.write_deltalake(str(path), rows, mode="append")
    twice = pa.concat_tables([rows, rows])
    assert difference(log.snapshot().scan().to_arrow(), twice) is None
    key = "id" if "id" in rows.column_names else "Id"
    gone = next((value for value in rows[key].to_pylist() if value is not None), None)
    if gone is not None and log.snapshot().properties.get("delta.appendOnly") != "true":
        literal = f"'{gone}'" if isinstance(gone, str) else str(gone)
        deltalake.DeltaTable(str(path)).delete(f'"{key}" = {literal}')
        twice = twice.filter(pc.fill_null(pc.not_equal(twice[key], gone), True))
        assert difference(log.snapshot().scan().to_arrow(), twice) is None
    deltalake.DeltaTable(str(path)).create_checkpoint()
    log.write(rows)
    wanted = pa.concat_tables([twice, rows])
    assert difference(log.snapshot().scan().to_arrow(), wanted) is None
    assert difference(read(deltalake, path, wanted.schema), wanted) is None
