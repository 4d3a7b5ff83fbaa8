"""deltalake on tables that the kernel has written: the same rows, or a refusal that names the feature; no JVM."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from spark_tests.engines.conformance.compare import difference
from spark_tests.engines.interop.catalogue import CASES
from spark_tests.engines.interop.continued_tables import id_of, some_id, without_id, write_again
from spark_tests.engines.interop.table_factory import Workshop

pytestmark = pytest.mark.interop

READ = [c.name for c in CASES.values() if c.deltalake is None and c.deltalake_misreads is None]


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


@pytest.mark.parametrize("name", READ)
def test_latest_version_has_the_rows_that_were_written(
    name: str, workshop: Workshop, deltalake: ModuleType
) -> None:
    table = workshop.written(name)
    wanted = table.expected(table.log.snapshot().version)
    assert difference(read(deltalake, table.path, wanted.schema), wanted) is None


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.deltalake is not None])
def test_feature_that_deltalake_lacks_is_refused_by_name(
    name: str, workshop: Workshop, deltalake: ModuleType
) -> None:
    table = workshop.written(name)
    with pytest.raises(Exception, match=str(CASES[name].deltalake)):
        read(deltalake, table.path, table.expected(table.log.snapshot().version).schema)


@pytest.mark.parametrize("name", [name for name in READ if CASES[name].deltalake_miswrites is None])
def test_both_go_on_where_the_other_stopped(
    name: str, workshop: Workshop, deltalake: ModuleType, tmp_path: Path
) -> None:
    case = CASES[name]
    path = tmp_path / name
    shutil.copytree(workshop.written(name).path, path)
    log = DeltaLog(path)
    rows = log.snapshot().scan().to_arrow()
    if case.deltalake_writes is not None:
        with pytest.raises(Exception, match=case.deltalake_writes):
            deltalake.write_deltalake(str(path), rows, mode="append")
        return
    deltalake.write_deltalake(str(path), rows, mode="append")
    twice = pa.concat_tables([rows, rows])
    assert difference(log.snapshot().scan().to_arrow(), twice) is None
    gone, literal = some_id(rows)
    if gone is not None and log.snapshot().properties.get("delta.appendOnly") != "true":
        deltalake.DeltaTable(str(path)).delete(f'"{id_of(rows)}" = {literal}')
        twice = without_id(twice, gone)
        assert difference(log.snapshot().scan().to_arrow(), twice) is None
    deltalake.DeltaTable(str(path)).create_checkpoint()
    write_again(log)
    ours = log.snapshot().scan().to_arrow()
    assert difference(read(deltalake, path, ours.schema), ours) is None
