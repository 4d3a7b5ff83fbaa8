"""The table function `pydelta(path, option, value, ...)`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds.exceptions import VersionNotFoundError
from delta_ds.spark.engines.classic import function
from delta_ds.spark.engines.classic.function import (
    NAME,
    _identifiers,
    _registry,
    register_function,
    unregister_function,
)
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.session.writes.write import insert_rows

pytestmark = pytest.mark.long


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own that has the function."""
    own = spark.newSession()
    register_function(own, insert_rows)
    yield own
    delta_ds.unregister(own)
    unregister_function(own)


@pytest.fixture
def asked(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What each call of the function asked for; every call answers with the numbers from 0 to 9."""
    seen: list[dict[str, str]] = []

    def load(spark: SparkSession, options: Mapping[str, str], **_: object) -> DataFrame:
        assert spark is session
        seen.append(dict(options))
        return spark.range(10)

    monkeypatch.setattr(function, "load", load)
    return seen


def test_path_and_options_reach_the_scan(session: SparkSession, asked: list[dict[str, str]]) -> None:
    rows = session.sql(
        "SELECT max(id) AS m FROM pydelta('/some/path', 'versionAsOf', 3) WHERE id < 5"
    ).collect()
    assert [tuple(row) for row in rows] == [(4,)]
    assert asked == [{"path": "/some/path", "versionAsOf": "3"}]


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("'x'", "x"),
        ("''", ""),
        ("3", "3"),
        ("1 + 2", "3"),
        ("30000000000", "30000000000"),
        ("true", "true"),
        ("NOT true", "false"),
        ("concat('a', 'b')", "ab"),
        ("DATE'2024-11-03'", "2024-11-03"),
        ("date_sub(DATE'2024-11-03', 1)", "2024-11-02"),
        ("TIMESTAMP'2024-11-03 08:30:00.5Z'", "2024-11-03T08:30:00.500000+00:00"),
        ("TIMESTAMP'2024-11-03 09:30:00Z'", "2024-11-03T09:30:00+00:00"),
    ],
)
def test_constants_of_every_kind_are_options(
    session: SparkSession, asked: list[dict[str, str]], argument: str, text: str
) -> None:
    session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    session.sql(f"SELECT * FROM pydelta('/p', 'name', {argument})").collect()
    assert asked == [{"path": "/p", "name": text}]


def test_expression_of_the_clock_is_a_constant(session: SparkSession, asked: list[dict[str, str]]) -> None:
    session.sql(
        "SELECT * FROM pydelta('/p', 'timestampAsOf', current_timestamp() - INTERVAL 1 DAY)"
    ).collect()
    assert asked[0]["timestampAsOf"].endswith("+00:00")


def test_parameter_markers_are_arguments(session: SparkSession, asked: list[dict[str, str]]) -> None:
    text = "SELECT count(*) FROM pydelta(:path, 'versionAsOf', :version)"
    assert session.sql(text, args={"path": "/p", "version": 2}).collect()[0][0] == 10
    assert asked == [{"path": "/p", "versionAsOf": "2"}]


def test_two_calls_in_one_query_are_two_tables(session: SparkSession, asked: list[dict[str, str]]) -> None:
    text = "SELECT count(*) FROM pydelta('/a') a JOIN pydelta('/a', 'versionAsOf', 1) b ON a.id = b.id"
    assert session.sql(text).collect()[0][0] == 10
    assert asked == [{"path": "/a"}, {"path": "/a", "versionAsOf": "1"}]


def test_view_over_the_function_reads_again(session: SparkSession, asked: list[dict[str, str]]) -> None:
    session.sql("CREATE TEMPORARY VIEW numbers AS SELECT * FROM pydelta('/p')")
    assert session.sql("SELECT count(*) FROM numbers").collect()[0][0] == 10
    assert asked[-1] == {"path": "/p"}


def test_error_of_the_table_reaches_the_user_with_its_condition(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> DataFrame:
        raise VersionNotFoundError("version 9 of '/p' is not there", parameters={"version": 9})

    monkeypatch.setattr(function, "load", load)
    with pytest.raises(AnalysisException) as raised:
        session.sql("SELECT * FROM pydelta('/p', 'versionAsOf', 9)")
    assert raised.value.getCondition() == "DELTA_VERSION_NOT_FOUND"
    assert str(raised.value).split("\n")[0] == "[DELTA_VERSION_NOT_FOUND] version 9 of '/p' is not there"
    assert raised.value.getMessageParameters() == {"version": "9"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pydelta()", "needs the path"),
        ("pydelta('')", "needs the path"),
        ("pydelta(NULL)", "needs the path"),
        ("pydelta('/p', 'versionAsOf')", "an option without a value: 'versionAsOf'"),
        ("pydelta('/p', 'versionAsOf', NULL)", "was given NULL"),
        ("pydelta('/p', 'versionAsOf', 1, 'VERSIONASOF', 2)", "'VERSIONASOF' twice"),
        ("pydelta('/p', 'path', '/q')", "'path' twice"),
        ("range(3) t, LATERAL pydelta(CAST(t.id AS STRING))", "are constants"),
    ],
)
def test_wrong_arguments_are_told(
    session: SparkSession, asked: list[dict[str, str]], call: str, message: str
) -> None:
    with pytest.raises(AnalysisException, match=message) as raised:
        session.sql(f"SELECT * FROM {call}")
    assert raised.value.getCondition() == "DELTA_ILLEGAL_OPTION"
    assert asked == []


def test_table_outside_the_native_scan_is_read_the_portable_way(
    session: SparkSession, sales: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(*_: object, **__: object) -> DataFrame:
        raise NotNative("as the test wants it")

    delta_ds.register(session)
    expected = session.read.format("pydelta").load(sales).count()
    monkeypatch.setattr(function, "load", load)
    with caplog.at_level(logging.WARNING, logger="delta_ds"):
        assert session.sql(f"SELECT count(*) FROM pydelta('{sales}')").collect()[0][0] == expected
    messages = [r.getMessage() for r in caplog.records if r.name == "delta_ds"]
    assert any("native_scan_not_used" in m and "as the test wants it" in m for m in messages)


def test_real_table_is_read_at_its_version(session: SparkSession, sales: str) -> None:
    whole = session.sql(f"SELECT count(*) FROM pydelta('{sales}')").collect()[0][0]
    first = session.sql(f"SELECT count(*) FROM pydelta('{sales}', 'versionAsOf', 1)").collect()[0][0]
    assert 0 < first < whole


def test_registering_twice_and_unregistering_is_harmless(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = spark.newSession()
    monkeypatch.setattr(function, "load", lambda spark, options, **_: spark.range(1))
    register_function(own, insert_rows)
    register_function(own, insert_rows)
    assert own.sql("SELECT * FROM pydelta('/p')").count() == 1
    unregister_function(own)
    unregister_function(own)
    with pytest.raises(AnalysisException, match="UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        own.sql("SELECT * FROM pydelta('/p')")


def test_function_of_someone_else_is_left_alone(spark: SparkSession) -> None:
    # The bindings hold their sessions weakly.
    sessions = spark.newSession(), spark.newSession()
    other, own = map(Jvm.of, sessions)
    register_function(other.spark, insert_rows)
    (identifier,) = _identifiers(other, NAME)
    theirs = _registry(other).lookupFunctionBuilder(identifier).get()
    _registry(own).createOrReplaceTempFunction("pydelta", theirs, "scala_udf")
    with pytest.raises(NotNative, match="another table function pydelta"):
        register_function(own.spark, insert_rows)
    unregister_function(own.spark)
    assert len(_identifiers(own, NAME)) == 1
    unregister_function(other.spark)
    assert _identifiers(other, NAME) == []
