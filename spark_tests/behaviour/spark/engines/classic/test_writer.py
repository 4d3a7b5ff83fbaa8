"""Spark's own writer and the Arrow writer make equal tables; what Spark cannot write goes the other way."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog, DeltaTable, InvariantViolationError
from delta_ds.exceptions import StorageError
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.storage.filesystem import FileStatus, Storage
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.transaction.write.parquet_files import NotPlainError, ParquetFiles, read_parquet_files
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.kernel.transaction.write.task import TaskResult, WriteSign
from delta_ds.spark.base.session_conf import ARROW_WRITE_CONF
from delta_ds.spark.engines.classic import plain_files, writer
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.writer import save

pytestmark = pytest.mark.long

COMMIT_PROTOCOL = "spark.sql.sources.commitProtocolClass"

ROWS = """
select id, cast(id as int) i, cast(id as short) sh, cast(id as byte) b, id % 2 = 0 as flag,
  cast(id as float) / 3 f, cast(id as double) / 3 d, cast(id as decimal(10,2)) dec, cast(id as decimal(38,10)) big,
  if(id = 3, null, concat('name ', id)) s, cast(concat('x', id) as binary) bin,
  date_add(date'2024-02-28', cast(id as int)) dt, timestamp_micros(id * 1000001) ts,
  timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) ntz,
  named_struct('x', id, 'y', if(id = 2, null, named_struct('z', cast(id as string)))) st,
  array(id, null) arr, map(cast(id as string), id) m, repeat(cast(id as string), 40) long_text,
  if(id = 1, cast('NaN' as double), if(id = 2, cast('-0.0' as double), 1.5)) odd
from range(0, 7, 1, 1)
"""
LAYOUTS: dict[str, dict[str, str]] = {
    "plain": {},
    "partitioned by a long": {"partitionBy": "id"},
    "by a date and a string": {"partitionBy": "dt,s"},
    "by a timestamp": {"partitionBy": "ts"},
    "by a timestamp without zone": {"partitionBy": "ntz"},
    "by a decimal and a boolean": {"partitionBy": "dec,flag"},
    "by a double": {"partitionBy": "d"},
    "mapped by name": {"delta.columnMapping.mode": "name", "partitionBy": "flag"},
    "mapped by id": {"delta.columnMapping.mode": "id"},
    "two indexed columns": {"delta.dataSkippingNumIndexedCols": "2"},
    "row tracking": {"delta.enableRowTracking": "true"},
    "clustered": {"clusterBy": "s,dt"},
}


def write_portable(spark: SparkSession, df: DataFrame, path: Path, options: Mapping[str, str]) -> None:
    spark.conf.set("spark.pydelta.nativeWrite", "false")
    try:
        df.write.format("pydelta").mode("append").options(**options).save(str(path))
    finally:
        spark.conf.unset("spark.pydelta.nativeWrite")


def logical(names: Mapping[str, str], value: Any) -> Any:
    """A statistics object with logical names, which random physical ones stand for."""
    if not isinstance(value, dict):
        return value
    return {names.get(key, key): logical(names, inner) for key, inner in value.items()}


def described(path: Path) -> list[Any]:
    """Of every live file: partition values and statistics, under logical names."""
    snapshot = DeltaLog(path).snapshot()
    names: dict[str, str] = {}

    def learn(fields: Any) -> None:
        for field in fields:
            names[field.metadata.get("delta.columnMapping.physicalName", field.name)] = field.name
            learn(getattr(field.type, "fields", ()))

    learn(snapshot.schema)
    found = []
    for line in DeltaLog(path).storage.read("_delta_log/00000000000000000000.json").splitlines():
        action = json.loads(line)
        if "add" in action:
            add = action["add"]
            stats = logical(names, json.loads(add["stats"]))
            found.append([logical(names, add["partitionValues"]), stats, add.get("baseRowId") is not None])
    return sorted(found, key=json.dumps)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arrow_write", ["true", "false"])
def test_all_writers_commit_equal_tables(
    spark: SparkSession, tmp_path: Path, layout: str, arrow_write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = LAYOUTS[layout]
    df = spark.sql(ROWS)
    by_spark = watched(monkeypatch, writer, "_write_files")
    spark.conf.set(ARROW_WRITE_CONF, arrow_write)
    try:
        version = save(df, {**options, "path": str(tmp_path / "native")}, overwrite=False)
    finally:
        spark.conf.unset(ARROW_WRITE_CONF)
    assert version == 0
    assert bool(by_spark) == (arrow_write == "false" or "partitionBy" not in options)
    assert_equals_the_portable_write(spark, df, tmp_path, options)


def watched(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[str]:
    """Grows by a name with each call of the function."""
    calls: list[str] = []
    function = getattr(module, name)

    def called(*arguments: Any, **named: Any) -> Any:
        calls.append(name)
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, called)
    return calls


def assert_equals_the_portable_write(
    spark: SparkSession, df: DataFrame, tmp_path: Path, options: Mapping[str, str]
) -> None:
    """The table in the folder `native` is the one that the portable path makes of the rows."""
    write_portable(spark, df, tmp_path / "arrow", options)
    native, arrow = (spark.read.format("pydelta").load(str(tmp_path / name)) for name in ("native", "arrow"))
    columns = [c for c in df.columns if c != "m"]  # maps cannot be sorted
    assert_df_equality(
        native.select(*columns).orderBy("id"), arrow.select(*columns).orderBy("id"), allow_nan_equality=True
    )
    assert native.schema == arrow.schema
    assert described(tmp_path / "native") == described(tmp_path / "arrow")
    first, second = (DeltaLog(tmp_path / name).history()[0] for name in ("native", "arrow"))
    for key in ("operation", "operationParameters", "isBlindAppend", "engineInfo"):
        assert first[key] == second[key]
    rows = [
        {k: v for k, v in h["operationMetrics"].items() if k != "numOutputBytes"} for h in (first, second)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_partition_timestamps_are_instants_in_every_session_zone(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.sql("select id, timestamp_micros(1700000000000001 + id * 1800000000) t from range(6)")
        save(df, {"path": str(tmp_path / "t"), "partitionBy": "t"}, overwrite=False)
        found = spark.read.format("pydelta").load(str(tmp_path / "t"))
        assert_df_equality(found.orderBy("id"), df.orderBy("id"), ignore_nullable=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_odd_partition_strings_come_back(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame(
        [
            (1, "a b/c=d%e:f#g+h\u00e9"),
            (2, ""),
            (3, None),
            (4, "__HIVE_DEFAULT_PARTITION__"),
            (5, "a%20b"),
            (6, ".x"),
        ],
        "id int, p string",
    )
    save(df, {"path": str(tmp_path / "t"), "partitionBy": "p"}, overwrite=False)
    found = {row.id: row.p for row in spark.read.format("pydelta").load(str(tmp_path / "t")).collect()}
    assert found == {1: "a b/c=d%e:f#g+h\u00e9", 2: None, 3: None, 4: None, 5: "a%20b", 6: ".x"}


def test_constraint_that_breaks_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(spark.range(3), {"path": str(path)}, overwrite=False)
    DeltaTable.forPath(spark, str(path)).addConstraint("small", "id < 10")
    before = sorted(p.name for p in path.iterdir())
    with pytest.raises(InvariantViolationError, match="small") as caught:
        save(spark.range(20), {"path": str(path)}, overwrite=False)
    assert caught.value.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert sorted(p.name for p in path.iterdir()) == before
    assert DeltaLog(path).snapshot().version == 1


def test_columns_that_the_rows_lack_are_null_whatever_their_number(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.sql("select 1L id, 1 a, 2 b, 'x' c, 3 d").write.format("pydelta").save(path)
    spark.range(2, 3).write.format("pydelta").mode("append").save(path)
    expected = spark.sql("select 1L id, 1 a, 2 b, 'x' c, 3 d union all select 2L, null, null, null, null")
    assert_df_equality(spark.read.format("pydelta").load(path).orderBy("id"), expected, ignore_nullable=True)


PARTITIONED = "select id, id % 5 k, concat('s', id) s from range(0, 40, 1, 4)"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        (ARROW_WRITE_CONF, "false"),
        (
            COMMIT_PROTOCOL,
            "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
        ),
    ],
)
def test_computed_rows_of_partitions_are_sparks_to_write_where_the_session_wants_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    by_tasks = watched(monkeypatch, writer, "write_computed")
    options = {"path": str(tmp_path), "partitionBy": "k"}
    spark.conf.set(setting, value)
    try:
        save(spark.sql(PARTITIONED), options, overwrite=False)
    finally:
        spark.conf.unset(setting)
    assert not by_tasks
    assert spark.read.format("pydelta").load(str(tmp_path)).count() == 40
    save(spark.sql(PARTITIONED), options, overwrite=False)
    assert by_tasks


def test_tasks_without_the_package_leave_computed_rows_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(df: DataFrame, plan: WritePlan, folder: str) -> TaskResult:
        write_computed(df, plan, folder)
        raise NotPlainError("executors lack it")

    write_computed = writer.write_computed
    monkeypatch.setattr(writer, "write_computed", fails)
    save(spark.sql(PARTITIONED), {"path": str(tmp_path), "partitionBy": "k"}, overwrite=False)
    assert spark.read.format("pydelta").load(str(tmp_path)).count() == 40
    files = list(tmp_path.rglob("part-*.parquet"))
    assert len(files) == DeltaLog(tmp_path).snapshot().files().num_rows


def test_constraint_that_breaks_in_a_partition_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_tasks = watched(monkeypatch, writer, "write_computed")
    options = {"path": str(tmp_path), "partitionBy": "k"}
    save(spark.sql(PARTITIONED), options, overwrite=False)
    DeltaTable.forPath(spark, str(tmp_path)).addConstraint("small", "id < 40 and k is not null")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvariantViolationError, match="small"):
        save(spark.sql("select 50L id, 1L k, 's' s"), options, overwrite=False)
    assert sorted(tmp_path.rglob("*")) == before
    assert len(by_tasks) == 2


def test_defaults_that_only_spark_evaluates_reach_partitions(spark: SparkSession, tmp_path: Path) -> None:
    table = f"pydelta.`{tmp_path}`"
    spark.sql(
        f"create table {table} (id long, k long, s string default reverse(sha2('x', 256))) using pydelta "
        "partitioned by (k) tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    save(spark.sql("select id, id % 3 k from range(9)"), {"path": str(tmp_path)}, overwrite=False)
    rows = spark.read.format("pydelta").load(str(tmp_path)).select("s").distinct().collect()
    assert rows == spark.sql("select reverse(sha2('x', 256))").collect()


def test_a_query_that_fails_at_its_end_leaves_no_table_and_can_be_done_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tasks take the end of rows that failed for the end of all, and may still write."""
    query = "select id, id % 300 p, if(id = {last}, raise_error('x'), uuid()) s from range(0, 150000, 1, 1)"
    options = {"path": str(tmp_path / "t"), "partitionBy": "p"}
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        save(spark.sql(query.format(last=149_999)), options, overwrite=False)
    deadline = time.monotonic() + 20
    while workers_write(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [file for file in tmp_path.rglob("*") if file.name != "t"] == []
    save(spark.sql(query.format(last=-1)), options, overwrite=False)
    assert spark.read.format("pydelta").load(str(tmp_path / "t")).count() == 150_000


def workers_write(folder: Path) -> bool:
    """Whether something below a folder has changed within a second."""
    before = sorted(folder.rglob("*"))
    time.sleep(1)
    return before != sorted(folder.rglob("*"))


def test_files_of_attempts_that_failed_are_deleted_when_the_write_is_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaves_some(rows: DataFrame, work: Any) -> Any:
        results = run_tasks(rows, work)
        folder = tmp_path / results[0].adds[0]["path"].partition("/")[0]
        shutil.copy(next(folder.rglob("*.parquet")), folder / "k=0" / "part-of-another-attempt.parquet")
        return results

    run_tasks = plain_files.run_tasks
    monkeypatch.setattr(plain_files, "run_tasks", leaves_some)
    save(spark.sql(PARTITIONED), {"path": str(tmp_path), "partitionBy": "k"}, overwrite=False)
    there = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    named = set(DeltaLog(tmp_path).snapshot().files()["path"].to_pylist())
    assert {path for path in there if "_delta_log" not in path} == named


def test_a_machine_that_does_not_see_the_folder_of_the_table_writes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteSign, "put", lambda sign: None)
    with pytest.raises(StorageError, match="one and the same folder on every machine"):
        save(spark.sql(PARTITIONED), {"path": str(tmp_path / "t"), "partitionBy": "k"}, overwrite=False)
    assert not list(tmp_path.rglob("*.parquet"))


def test_write_without_rows_leaves_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(spark.range(3), {"path": str(path)}, overwrite=False)
    before = sorted(p.name for p in path.iterdir())
    assert save(spark.range(3).where("id > 5"), {"path": str(path)}, overwrite=False) is None
    assert sorted(p.name for p in path.iterdir()) == before


def test_no_checksums_of_hadoop_are_left_beside_the_files(spark: SparkSession, tmp_path: Path) -> None:
    save(
        spark.range(10).selectExpr("id", "id % 2 p"),
        {"path": str(tmp_path / "t"), "partitionBy": "p"},
        overwrite=False,
    )
    assert not [p for p in (tmp_path / "t").rglob("*.crc") if "_delta_log" not in p.parts]


def test_rows_that_the_driver_does_not_see_are_no_write(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(spark.range(10), {"path": str(path)}, overwrite=False)

    def with_a_file_lost(storage: Storage, plan: WriteSpec, folder: str, **how: Any) -> ParquetFiles:
        first = min((path / folder).glob("*.parquet"))
        first.unlink()  # as if it were on another machine
        return read_parquet_files(storage, plan, folder, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "read_parquet_files", with_a_file_lost)
        with pytest.raises(StorageError, match="have written 10 rows, and 5 are in the files"):
            save(spark.range(0, 10, 1, 2).selectExpr("id + 1 AS id"), {"path": str(path)}, overwrite=False)
    assert DeltaLog(str(path)).snapshot().version == 0
    assert len([one for one in path.iterdir() if one.is_dir()]) == 2


def test_files_of_other_attempts_do_not_count_and_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"

    def with_a_file_more(storage: Storage, plan: WriteSpec, folder: str, **how: Any) -> ParquetFiles:
        first = min((path / folder).glob("*.parquet"))
        parts = first.name.split("-")
        parts[1] = f"{parts[1]}9999"  # another attempt at the same task
        shutil.copy(first, first.with_name("-".join(parts)))
        return read_parquet_files(storage, plan, folder, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "read_parquet_files", with_a_file_more)
        save(spark.range(0, 10, 1, 2).selectExpr("id + 1 AS id"), {"path": str(path)}, overwrite=False)
    snapshot = DeltaLog(str(path)).snapshot()
    assert snapshot.scan().count() == 10
    assert len(list(path.rglob("*.parquet"))) == len(snapshot.files()) == 2


def test_the_digits_of_the_jvms_locale_are_digits(spark: SparkSession, tmp_path: Path) -> None:
    locale = spark._jvm.java.util.Locale
    before = locale.getDefault()
    locale.setDefault(locale.forLanguageTag("ar-EG"))
    try:
        save(
            spark.range(0, 10, 1, 2).selectExpr("id + 1 AS id"),
            {"path": str(tmp_path / "t")},
            overwrite=False,
        )
    finally:
        locale.setDefault(before)
    assert DeltaLog(str(tmp_path / "t")).snapshot().scan().count() == 10


def test_names_of_attempts_are_read_in_any_digits(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"

    def with_other_digits(storage: Storage, plan: WriteSpec, folder: str, **how: Any) -> ParquetFiles:
        for file in (path / folder).glob("*.parquet"):
            head, attempt, rest = file.name.split("-", 2)
            time, numbers = attempt.removeprefix("attempt_").split("_", 1)
            digits = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
            file.rename(file.with_name(f"{head}-attempt_{time}_{numbers.translate(digits)}-{rest}"))
        return read_parquet_files(storage, plan, folder, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "read_parquet_files", with_other_digits)
        save(spark.range(0, 10, 1, 2).selectExpr("id + 1 AS id"), {"path": str(path)}, overwrite=False)
    assert DeltaLog(str(path)).snapshot().scan().count() == 10


def test_a_write_in_a_thread_that_is_interrupted_leaves_no_queue_that_is_deaf(
    spark: SparkSession, tmp_path: Path
) -> None:
    loader = Jvm.of(spark).writes.getClass().getClassLoader()
    (make,) = loader.loadClass("TableWrite$Attempts").getDeclaredConstructors()
    make.setAccessible(True)
    attempts = make.newInstance(spark.sparkContext._gateway.new_array(spark._jvm.Object, 0))
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.addToQueue(attempts, "pydelta")
    thread = spark._jvm.java.lang.Thread
    thread.currentThread().interrupt()  # as a stream that is stopped does it to the thread of its batch
    try:
        attempts.leave(bus)
    finally:
        thread.interrupted()
    save(spark.range(3), {"path": str(tmp_path / "t")}, overwrite=False)
    assert DeltaLog(str(tmp_path / "t")).snapshot().scan().count() == 3


def test_optimized_write_gathers_the_rows_of_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 400, 1, 4).selectExpr("id", "id % 2 p")
    save(df, {"path": str(tmp_path / "t"), "partitionBy": "p", "optimizeWrite": "true"}, overwrite=False)
    assert DeltaLog(tmp_path / "t").open_snapshot().live_files().num_rows == 2


def test_files_are_cut_by_their_number_of_records(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(0, 10, 1, 1), {"path": str(tmp_path / "t"), "maxRecordsPerFile": "4"}, overwrite=False)
    stats = DeltaLog(tmp_path / "t").open_snapshot().live_files().stats_json().to_pylist()
    assert sorted(json.loads(text)["numRecords"] for text in stats) == [2, 4, 4]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_files_have_the_ids_of_column_mapping(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    import pyarrow.parquet as pq

    save(
        spark.sql("select 1 a, named_struct('x', 2) s"),
        {"path": str(tmp_path / "t"), "delta.columnMapping.mode": mode},
        overwrite=False,
    )
    (file,) = (tmp_path / "t").rglob("*.parquet")
    schema = pq.read_schema(file)
    fields = [schema.field(0), schema.field(1), schema.field(1).type.field(0)]
    assert [int(f.metadata[b"PARQUET:field_id"]) for f in fields] == [1, 2, 3]


@pytest.mark.parametrize(
    ("sql", "options", "reason"),
    [
        ("select parse_json('1') v", {}, "variants"),
        ("select 1 a, cast('x' as binary) b", {"partitionBy": "b"}, "binary"),
        ("select 1 a", {"delta.targetFileSize": "1mb"}, "targetFileSize"),
    ],
)
def test_what_spark_cannot_write_is_left_to_the_portable_path(
    spark: SparkSession, tmp_path: Path, sql: str, options: dict[str, str], reason: str
) -> None:
    df = spark.sql(sql)
    with pytest.raises(NotNative, match=reason):
        save(df, {**options, "path": str(tmp_path / "t")}, overwrite=False)
    assert not (tmp_path / "t").exists()
    df.write.format("pydelta").options(**options).save(str(tmp_path / "t"))
    assert spark.read.format("pydelta").load(str(tmp_path / "t")).count() == 1


def test_session_settings_of_parquet_do_not_reach_the_files(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    try:
        df = spark.sql("select timestamp'2024-01-01 00:00:00.123456' t, cast(1.5 as decimal(5,2)) d")
        save(df, {"path": str(tmp_path / "t")}, overwrite=False)
    finally:
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    (file,) = (tmp_path / "t").rglob("*.parquet")
    assert pq.read_schema(file).field("t").type == pa.timestamp("us", tz="UTC")
    assert pq.ParquetFile(file).metadata.schema.column(1).physical_type == "INT32"


def test_table_is_read_and_overwritten_in_one_query(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(spark.range(10), {"path": path}, overwrite=False)
    save(spark.read.format("pydelta").load(path).where("id % 2 = 0"), {"path": path}, overwrite=True)
    assert [r.id for r in spark.read.format("pydelta").load(path).orderBy("id").collect()] == [0, 2, 4, 6, 8]


def test_files_stay_where_tidying_up_after_the_commit_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.exceptions import StorageError

    def refuse(self: LocalStorage, paths: object) -> None:
        raise StorageError("the disk refuses")

    monkeypatch.setattr(LocalStorage, "delete", refuse)
    assert save(spark.range(5), {"path": str(tmp_path / "t")}, overwrite=False) == 0
    assert spark.read.format("pydelta").load(str(tmp_path / "t")).collect() != []


@pytest.mark.parametrize("commits", [0, 3])
def test_a_write_lists_the_log_once_and_reads_no_commit_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    for _ in range(commits):
        DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    listed: list[str] = []
    read: list[str] = []
    list_from, read_file = LocalStorage.list_from, LocalStorage.read

    def counted_list(storage: LocalStorage, directory: str, start: str = "") -> list[FileStatus]:
        listed.append(directory)
        return list_from(storage, directory, start)

    def counted_read(storage: LocalStorage, path: str) -> bytes:
        read.append(path)
        return read_file(storage, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "list_from", counted_list)
        patch.setattr(LocalStorage, "read", counted_read)
        assert save(spark.range(3), {"path": str(tmp_path)}, overwrite=False) == commits
    assert listed == ["_delta_log"]
    assert sorted(path for path in read if path.endswith(".json")) == [
        f"_delta_log/{version:020d}.json" for version in range(commits)
    ]


def test_a_store_that_is_out_of_reach_once_rows_are_committed_has_none_written_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    finish = writer.finish_write

    def finished(*arguments: Any, **named: Any) -> Any:
        version = finish(*arguments, **named)

        def out_of_reach(*_: Any, **__: Any) -> str:
            raise NotNative("the store is out of reach")

        monkeypatch.setattr(writer, "hadoop_root", out_of_reach)
        return version

    monkeypatch.setattr(writer, "finish_write", finished)
    spark.range(3).write.format("pydelta").mode("append").save(path)
    assert (DeltaLog(path).snapshot().version, DeltaLog(path).snapshot().scan().count()) == (0, 3)
