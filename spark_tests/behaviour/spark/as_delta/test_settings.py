"""Settings that ask for delta-spark's jar: which are left out, which stay, and what the log says."""

from __future__ import annotations

import logging
import os

import pytest

from delta_ds.spark.as_delta import settings
from delta_ds.spark.as_delta.settings import (
    EXTENSIONS,
    PACKAGES,
    SESSION_CATALOG,
    remaining_settings,
    remaining_submit_arguments,
)

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
JAR = "io.delta:delta-spark_2.13:4.0.0"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_told", set())


@pytest.fixture(autouse=True)
def no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "other_package", lambda: None)


def left(given: dict[str, str], *, jar: bool = False) -> dict[str, str]:
    return remaining_settings(given, lambda name: jar)


@pytest.mark.parametrize(
    ("name", "value", "remaining"),
    [
        (EXTENSIONS, EXTENSION, None),
        (EXTENSIONS, f"org.x.Mine, {EXTENSION},org.x.Other", "org.x.Mine,org.x.Other"),
        (EXTENSIONS, "org.x.Mine", "org.x.Mine"),
        (SESSION_CATALOG, CATALOG, None),
        (SESSION_CATALOG, "org.x.IcebergCatalog", "org.x.IcebergCatalog"),
        (PACKAGES, JAR, None),
        (PACKAGES, f"org.x:y:1,{JAR}", "org.x:y:1"),
        (PACKAGES, "io.delta:delta-core_2.12:2.4.0, io.delta:delta-storage-s3-dynamodb:4.0.0", None),
        (PACKAGES, "io.delta:delta-sharing-client_2.13:1.2.0", "io.delta:delta-sharing-client_2.13:1.2.0"),
        ("spark.sql.catalog.mine", CATALOG, CATALOG),
        ("spark.app.name", EXTENSION, EXTENSION),
    ],
)  # fmt: skip
def test_what_only_the_jar_could_honour_is_left_out(name: str, value: str, remaining: str | None):
    assert left({name: value, "a": "b"}) == {"a": "b", **({} if remaining is None else {name: remaining})}


def test_where_the_jar_is_its_classes_stay():
    given = {EXTENSIONS: EXTENSION, SESSION_CATALOG: CATALOG}
    assert left(given, jar=True) == given


def test_the_jar_is_fetched_for_the_python_package_of_delta_spark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings, "other_package", lambda: "/site-packages/delta/__init__.py")
    assert left({PACKAGES: JAR}) == {PACKAGES: JAR}


def test_each_is_told_in_one_line_once(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "delta_ds"):
        for _ in range(3):
            left({EXTENSIONS: EXTENSION, SESSION_CATALOG: CATALOG, PACKAGES: "org.x:y:1"})
    assert [record.getMessage().split(" reason=")[0] for record in caplog.records] == [
        f"delta_spark_setting_left_out name={EXTENSIONS} value={EXTENSION}",
        f"delta_spark_setting_left_out name={SESSION_CATALOG} value={CATALOG}",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"--packages {JAR} pyspark-shell", "pyspark-shell"),
        (f"--name n --packages={JAR},org.x:y:1 pyspark-shell", "--name n --packages org.x:y:1 pyspark-shell"),
        ("--conf 'a=b c' pyspark-shell", "--conf 'a=b c' pyspark-shell"),
    ],
)  # fmt: skip
def test_arguments_of_the_jvm_lose_the_packages(before: str, after: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", before)
    remaining_submit_arguments()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == after
