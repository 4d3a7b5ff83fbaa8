"""Options of Spark Connect: plans have references, and the values come to the server with the class of the source."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark import cloudpickle  # type: ignore[attr-defined]
from pyspark.sql.datasource import DataSource

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.options.read import parse_read_options
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.spark.base.kinds import frames, sealed
from delta_ds.spark.base.kinds.sealed import MARK, Sealed, open_value, register_source, seal, seal_argument
from delta_ds.spark.commands.blame import BlameSource
from delta_ds.spark.commands.dml_target import TargetSource
from delta_ds.spark.engines.connect import connect_bridge
from delta_ds.spark.engines.portable.source import DeltaSource, PushdownSource

SECRET = "MarkedSecretValue"
LOGIN = f"s3://AKIA:{SECRET}@bucket/t"


class Source(DataSource, Sealed):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(self.opened(options))

    @classmethod
    def name(cls) -> str:
        return "sealed_test"


class Session:
    """A session of Spark Connect, as far as it is asked here: it keeps what Spark would send."""

    _active_session = threading.local()

    def __init__(self) -> None:
        self.dataSource = self
        self.sent: list[bytes] = []

    def register(self, source: Any) -> None:
        self.sent.append(cloudpickle.dumps(source))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    for module in (sealed, frames):
        monkeypatch.setattr(module, "is_connect", lambda spark: isinstance(spark, Session))
    monkeypatch.setattr(sealed, "_carried", {})
    made = Session()
    register_source(made, Source)
    return made


def test_plans_have_references_and_the_server_the_values(session: Any) -> None:
    given = {"path": LOGIN, "fs.azure.account.key.a": SECRET, "storage.key": SECRET, "versionAsOf": "3"}
    options = seal(session, given, "sealed_test")
    assert SECRET not in str(options) and options["versionAsOf"] == "3"
    assert len(session.sent) == 2 and SECRET.encode() not in session.sent[0]
    assert seal(session, options, "sealed_test") == options
    assert seal(session, given, "sealed_test") == options and len(session.sent) == 2
    assert cloudpickle.loads(session.sent[1])(options).options == given


def test_the_class_is_known_to_a_process_that_never_saw_it(session: Any) -> None:
    options = seal(session, {"fs.azure.account.key.a": SECRET}, "sealed_test")
    program = (
        "import sys; from pyspark import cloudpickle; "
        f"print(cloudpickle.loads(sys.stdin.buffer.read())({options!r}).options)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=session.sent[-1], capture_output=True, check=True
    )
    assert SECRET.encode() in done.stdout


def test_a_reference_that_is_not_known_is_an_error_without_it(session: Any) -> None:
    options = seal(session, {"fs.azure.account.key.a": SECRET}, "sealed_test")
    with pytest.raises(InvalidOptionError, match=r"fs\.azure\.account\.key\.a.*register") as caught:
        Source(options)
    assert caught.value.condition == "DELTA_SECRET_NOT_KNOWN"
    assert SECRET not in str(caught.value)


def test_values_are_of_one_session_and_of_one_source(session: Any) -> None:
    seal(session, {"storage.key": SECRET}, "sealed_test")
    other = Session()
    register_source(other, Source)
    seal(other, {"storage.key": "other"}, "sealed_test")
    assert SECRET.encode() not in b"".join(other.sent)
    # A source that is not registered like this would not know what a reference is.
    assert seal(session, {"storage.key": SECRET}, "nosuch") == {"storage.key": SECRET}


def test_in_a_classic_session_options_have_names_whose_values_spark_hides() -> None:
    given: dict[str, str] = {"storage.key": SECRET, "fs.s3a.encryption.key": SECRET, "path": "/t"}
    classic: Any = None
    sealed_options = seal(classic, given, "pydelta")
    assert all("secret" in name for name, value in sealed_options.items() if value == SECRET)
    assert parse_read_options(sealed_options, "UTC") == parse_read_options(given, "UTC")


def test_arguments_of_calls_are_sealed_where_they_are_options_or_addresses(session: Any) -> None:
    arguments = [SecretOptions({"fs.s3a.secret.key": SECRET}), LOGIN, "s3://bucket/t", 5, {"a": SECRET}]
    told = [seal_argument(session, one) for one in arguments]
    assert SECRET not in str(told[:2]) and told[2:] == arguments[2:]
    seal(session, {}, "sealed_test")
    cloudpickle.loads(session.sent[-1])({})
    assert [open_value("x", one) for one in told] == [dict(arguments[0]), *arguments[1:]]  # type: ignore[call-overload]


def test_a_source_that_carries_values_is_unpickled_where_only_the_package_is(session: Any) -> None:
    register_source(session, DeltaSource)
    options = seal(session, {"path": "/t", "storage.key": SECRET}, DeltaSource.name())
    carrier = cloudpickle.loads(session.sent[-1])
    assert carrier is not DeltaSource
    found = pickle.loads(cloudpickle.dumps(carrier(options)))
    assert type(found) is DeltaSource and found.options["storage.key"] == SECRET


def test_every_source_of_the_package_takes_references() -> None:
    for source in (DeltaSource, PushdownSource, connect_bridge.ServerSource, TargetSource, BlameSource):
        assert issubclass(source, Sealed)
    assert MARK not in str(connect_bridge.ServerSource({"path": "/t"}).options)
