"""A server of ours and clients that share it, stop it in the middle, lose it, or ask much of it; docs/connect.md.

Functions of the tests run in the client's process, as `client(function, ...)`.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaLog, DeltaTable
from spark_tests.behaviour.spark.connect_server import (
    SECONDS,
    Client,
    another_session,
    client_of,
    client_of_ours,
    cutting_proxy,
    run,
    server_of_ours,
)

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client_of_ours(tmp_path_factory.mktemp("connect_sessions")) as client:
        yield client


# --- sessions beside each other


def outcome(call: Callable[[], object]) -> str:
    """`done`, or the condition of what was raised, without what follows a point in it."""
    try:
        call()
    except Exception as error:
        return re.findall(r"\[([A-Z_]+)", str(error))[0]
    return "done"


# --- sessions with other settings


def test_each_session_has_its_own_settings(server: Client) -> None:
    """At the same time: in each a statement and a method, whose meaning is that of the session's settings."""

    def program(spark: SparkSession) -> list[Any]:
        settings: list[dict[str, str]] = [
            {
                "spark.sql.session.timeZone": zone,
                "spark.sql.ansi.enabled": ansi,
                "spark.sql.caseSensitive": case,
                "spark.databricks.delta.schema.autoMerge.enabled": evolves,
                "spark.databricks.delta.properties.defaults.enableDeletionVectors": vectors,
            }
            for zone, ansi, case, evolves, vectors in (
                ("UTC", "true", "false", "true", "false"),
                ("America/New_York", "false", "true", "false", "true"),
                ("Asia/Tokyo", "false", "false", "true", "true"),
            )
        ]

        def changed(number: int, own: dict[str, str]) -> list[Any]:
            session, name = another_session(), f"settings_{number}"
            for key, value in own.items():
                session.conf.set(key, value)
            run(session, f"CREATE TABLE {name} (at TIMESTAMP, n INT) USING delta")
            table = DeltaTable.forName(session, name)
            run(session, f"INSERT INTO {name} VALUES (timestamp'2026-01-01 00:00:00', 1)")
            table.update(set={"at": "timestamp'2026-01-01 00:00:00'"})
            new = session.sql("SELECT timestamp'2026-01-01 00:00:00' AS at, 2 AS n, 'x' AS more").alias("s")
            merge = table.alias("t").merge(new, "t.n = s.n").whenNotMatchedInsertAll()
            found = [
                outcome(lambda: run(session, f"UPDATE {name} SET n = CAST('x' AS INT)")),
                outcome(lambda: table.update(set={"n": "CAST('x' AS INT)"})),
                outcome(lambda: run(session, f"DELETE FROM {name} WHERE N < 0")),
                outcome(lambda: table.delete("N < 0")),
                outcome(merge.execute),
            ]
            (seconds,) = run(session, f"SELECT DISTINCT unix_seconds(at) FROM {name}")
            (detail,) = table.detail().collect()
            vectors = detail.properties.get("delta.enableDeletionVectors")
            return [seconds, found, session.table(name).columns[2:], vectors]

        answers: list[Any] = [None] * len(settings)

        def work(number: int) -> None:
            answers[number] = changed(number, settings[number])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(settings))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        return answers

    midnight = 1767225600
    fails, unknown = "CAST_INVALID_INPUT", "UNRESOLVED_COLUMN"
    assert server(program) == [
        [[(midnight,)], [fails, fails, "done", "done", "done"], ["more"], "false"],
        [[(midnight + 5 * 3600,)], ["done", "done", unknown, unknown, "done"], [], "true"],
        [[(midnight - 9 * 3600,)], ["done", "done", "done", "done", "done"], ["more"], "true"],
    ]


def test_unregister_is_of_one_session(server: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        one, other = another_session(), another_session()
        for session in (one, other):
            delta_ds.register(session)
        one.range(3).write.format("pydelta").save(path)
        delta_ds.unregister(one)

        def shows_secret(session: SparkSession) -> bool:
            read = session.read.format("pydelta").option("fs.s3a.secret.key", "verysecret").load(path)
            return "verysecret" in str(read._plan.to_proto(session.client))  # type: ignore[operator]

        other.range(3, 5).write.format("pydelta").mode("ignore").save(path)
        return [
            shows_secret(one),
            shows_secret(other),
            other.read.format("pydelta").load(path).count(),
            # What the server has by itself stays.
            run(one, f"SELECT count(*) FROM delta.`{path}`"),
        ]

    assert server(program, str(tmp_path / "t")) == [True, False, 3, [[(3,)]]]


def test_the_default_mode_has_both_of_its_names_in_a_registered_session(server: Client) -> None:
    def program(spark: SparkSession) -> list[str]:
        session = another_session()
        delta_ds.register(session)

        def written(source: str, name: str) -> str:
            try:
                session.range(2).write.format(source).mode("errorIfExists").saveAsTable(name)
            except Exception as error:
                return str(error).partition("]")[0].lstrip("[")
            return "done"

        tables = (("delta", "modes"), ("parquet", "modes_of_files"), ("delta", "modes"))
        return [written(source, name) for source, name in tables]

    assert server(program) == ["done", "done", "TABLE_OR_VIEW_ALREADY_EXISTS"]


# --- interrupts


def _interrupt(session: Any, how: str, operations: set[str]) -> int:
    """How many operations of a session were told to end."""
    ways: dict[str, Callable[[], list[str]]] = {
        "all": session.interruptAll,
        "tag": lambda: session.interruptTag("mine"),
        "operation": lambda: [each for one in operations for each in session.interruptOperation(one)],
    }
    return len(ways[how]())


def _delete(session: Any, path: str) -> None:
    run(session, f"DELETE FROM delta.`{path}` WHERE slow(id) >= 0")


def _merge(session: Any, path: str) -> None:
    source = session.range(8).selectExpr("slow(id) AS id", "'new' AS v")
    table = DeltaTable.forPath(session, path).alias("t")
    table.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _append(session: Any, path: str) -> None:
    rows = session.range(8).selectExpr("slow(id) AS id", "'new' AS v")
    rows.write.format("delta").mode("append").save(path)


def _query(session: Any, path: str) -> None:
    run(session, f"SELECT sum(slow(id)) FROM delta.`{path}`")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "how"),
    [
        (_delete, "all"), (_delete, "tag"), (_delete, "operation"),
        (_merge, "all"), (_merge, "tag"), (_merge, "operation"),
        (_append, "all"), (_append, "tag"), (_append, "operation"),
        (_query, "all"), (_query, "operation"),
    ],
    ids=lambda given: given if isinstance(given, str) else given.__name__.lstrip("_"),
)  # fmt: skip
def test_an_interrupted_command_leaves_nothing(
    server: Client, tmp_path: Path, how: str, command: Callable[[Any, str], None]
) -> None:
    def program(spark: SparkSession, path: str, started: str) -> list[Any]:
        from pyspark.sql.functions import udf

        session = another_session()
        rows = session.range(0, 8, 1, 2).selectExpr("id", "cast(id AS STRING) AS v")
        rows.write.format("delta").save(path)

        def slow(value: int) -> int:
            import time
            from pathlib import Path

            Path(started).touch()
            time.sleep(3)
            return value

        session.udf.register("slow", udf(slow, "bigint"))
        said: list[str] = []
        operations: set[str] = set()

        def progress(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
            (operations.discard if done else operations.add)(operation_id)

        session.registerProgressHandler(progress)

        def work() -> None:
            session.addTag("mine")
            try:
                command(session, path)
                said.append("done")
            except Exception as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        deadline = time.monotonic() + SECONDS
        while not (os.path.exists(started) and operations) and time.monotonic() < deadline:
            time.sleep(0.05)
        interrupted = _interrupt(session, how, set(operations))
        thread.join(SECONDS)
        # What the command had begun it may still be clearing away.
        time.sleep(2)
        files = list(Path(path).rglob("*.parquet"))
        counts = [
            DeltaTable.forPath(session, path).history().count(),
            session.table(f"delta.`{path}`").count(),
        ]
        run(session, f"DELETE FROM delta.`{path}` WHERE id = 0")
        return [interrupted, said, counts, len(files), session.table(f"delta.`{path}`").count()]

    path = str(tmp_path / "t")
    interrupted, (said,), counts, files, left = server(program, path, str(tmp_path / "started"))
    assert interrupted >= 1
    assert "OPERATION_CANCELED" in said or "interrupted" in said.lower() or "cancel" in said.lower(), said
    assert (counts, left) == ([1, 8], 7)
    assert files == DeltaLog(path).snapshot(0).files().num_rows


# --- a connection that is lost


def _insert_lost(session: Any, path: str) -> object:
    return run(session, f"INSERT INTO delta.`{path}` SELECT slow(id) FROM range(2)")


def _update_lost(session: Any, path: str) -> object:
    return run(session, f"UPDATE delta.`{path}` SET id = slow(id) + 1")[0]


def _method_lost(session: Any, path: str) -> object:
    return DeltaTable.forPath(session, path).delete("slow(id) = 1").collect()[0][0]


def _save_lost(session: Any, path: str) -> object:
    return session.range(2).selectExpr("slow(id) AS id").write.format("delta").mode("append").save(path)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "answer", "operation"),
    [
        (_insert_lost, [[]], "WRITE"),
        (_update_lost, [(4,)], "UPDATE"),
        (_method_lost, 1, "DELETE"),
        (_save_lost, None, "WRITE"),
    ],
    ids=["insert", "update", "method", "save"],
)
def test_a_command_whose_connection_is_cut_commits_once_and_answers(
    lossy: tuple[Client, Any],
    tmp_path: Path,
    command: Callable[[Any, str], object],
    answer: object,
    operation: str,
) -> None:
    def program(spark: SparkSession, path: str, started: str) -> list[Any]:
        from pyspark.sql.functions import udf

        session = another_session()
        session.range(0, 4, 1, 1).write.format("delta").save(path)

        def slow(value: int) -> int:
            import time
            from pathlib import Path

            Path(started).touch()
            time.sleep(0.5)
            return value

        session.udf.register("slow", udf(slow, "bigint"))
        said = command(session, path)
        history = DeltaTable.forPath(session, path).history().select("operation").collect()
        return [said, [row.operation for row in history]]

    client, proxy = lossy
    started = tmp_path / "started"
    ended = threading.Event()
    cuts = []

    def cut() -> None:
        while not started.exists() and not ended.wait(0.02):
            pass
        # In the middle of the command, and about where it commits and answers.
        while not ended.wait(0.4):
            cuts.append(proxy.cut())

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        said, operations = client(program, str(tmp_path / "t"), str(started))
    finally:
        ended.set()
        cutter.join(SECONDS)
    assert sum(cuts) > 0
    assert said == answer
    assert operations == [operation, "WRITE"]


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Any]]:
    """A client whose connections pass a proxy that can cut them."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    folder = tmp_path_factory.mktemp("connect_lost")
    (folder / "client").mkdir()
    with server_of_ours(folder) as url:
        port = int(url.rpartition(":")[2])
        with (
            cutting_proxy(port) as proxy,
            client_of(f"sc://127.0.0.1:{proxy.port}", folder, folder / "client") as client,
        ):
            yield client, proxy


def test_a_hundred_megabytes_come_at_once(server: Client) -> None:
    """To the client, by name and by path, and into a MERGE."""

    def program(spark: SparkSession) -> list[Any]:
        session = another_session()
        text = "lpad(cast(id AS STRING), 100, '0') AS text"
        run(session, f"CREATE TABLE large USING delta AS SELECT id, {text} FROM range(1000000)")
        rows = session.table("large").toArrow().sort_by("id")
        by_path = DeltaTable.forName(session, "large").toDF().where("id % 2 = 0").toArrow()
        run(
            session,
            "CREATE TABLE merged (id BIGINT, text STRING) USING delta",
            "INSERT INTO merged VALUES (7, '')",
        )
        target = DeltaTable.forName(session, "merged").alias("t")
        merge = target.merge(session.table("large").alias("s"), "t.id = s.id")
        (counts,) = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()
        merged = session.table("merged").toArrow().sort_by("id")
        return [rows.nbytes > 100e6, by_path.num_rows, tuple(counts), merged.equals(rows.cast(merged.schema))]

    assert server(program) == [True, 500_000, (1_000_000, 1, 0, 999_999), True]


# --- artifacts


def test_files_that_a_session_has_sent_serve_the_functions_of_its_commands(server: Client) -> None:
    """A module, a file and an archive, of two sessions."""

    def program(spark: SparkSession) -> list[Any]:
        import zipfile

        from pyspark.sql.functions import udf

        def answers(number: int) -> list[Any]:
            session, name = another_session(), f"sent_{number}"
            folder = Path(name)
            folder.mkdir()
            # Names of their own: Spark keeps what all sessions of local workers have sent in one folder.
            module, added, packed = f"module_{number}", f"added_{number}.txt", f"packed_{number}"
            (folder / f"{module}.py").write_text(f"def times(value):\n    return {number} * value\n")
            (folder / added).write_text(str(number * 100))
            with zipfile.ZipFile(folder / f"{packed}.zip", "w") as archive:
                archive.writestr("inner.txt", str(number * 1000))
            session.addArtifacts(str(folder / f"{module}.py"), pyfile=True)
            session.addArtifacts(str(folder / added), file=True)
            session.addArtifacts(f"{folder}/{packed}.zip#{packed}", archive=True)

            @udf("bigint")
            def sent(value: int) -> int:
                import importlib
                import os

                from pyspark import SparkFiles

                def number_in(*path: str) -> int:
                    with open(os.path.join(SparkFiles.getRootDirectory(), *path)) as file:
                        return int(file.read())

                found: int = importlib.import_module(module).times(value)
                return found + number_in(added) + number_in(packed, "inner.txt")

            session.udf.register("sent", sent)
            found: list[Any] = [row[0] for row in session.range(2).select(sent("id")).collect()]
            session.range(4).select("id", sent("id").alias("v")).write.format("delta").saveAsTable(name)
            table = DeltaTable.forName(session, name).alias("t")
            source = session.range(2, 5).alias("s")
            merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": sent("t.v")})
            merge.whenNotMatchedInsert(values={"id": "s.id", "v": sent("s.id")}).execute()
            table.update("id = 0", {"v": sent("v")})
            run(
                session,
                f"MERGE INTO {name} t USING (SELECT 4L AS id UNION ALL SELECT 9L) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = sent(t.v) "
                "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, sent(s.id))",
                f"UPDATE {name} SET v = sent(v) WHERE sent(id) = sent(1)",
                f"DELETE FROM {name} WHERE sent(id) = sent(3)",
            )
            return [found, sorted(map(tuple, session.table(name).collect()))]

        return [answers(number) for number in (2, 3)]

    def expected(number: int) -> list[Any]:
        def sent(value: int) -> int:
            return number * value + number * 1100

        rows = [(0, sent(sent(0))), (1, sent(sent(1))), (2, sent(sent(2))), (4, sent(sent(4))), (9, sent(9))]
        return [[sent(0), sent(1)], rows]

    assert server(program) == [expected(2), expected(3)]
