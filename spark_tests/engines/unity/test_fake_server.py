"""Unity Catalog by the fake server: the contract, and what a server and its network do to a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import (
    DeltaLog,
    InvalidOptionError,
    StorageError,
    UncertainWriteError,
    UnsupportedFeatureError,
)
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.storage import store_errors as backoff
from delta_ds.kernel.storage.settings.translate import to_filesystem_options
from delta_ds.kernel.storage.uri import parse_address
from delta_ds.kernel.transaction.unity import http
from delta_ds.kernel.transaction.unity.api import vended
from delta_ds.kernel.transaction.unity.coordinator import UnityCatalog
from spark_tests.engines.stores.servers import free_port
from spark_tests.engines.unity import exchanges, fake_server
from spark_tests.engines.unity.contract import ROWS, Contract, Place, folder, ids, published, staged
from spark_tests.engines.unity.fake_server import Fault, UnityServer

NAME = "main.sales.t"
SECRET = "dapi-secret-of-the-tests"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_sleep", lambda seconds: None)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with fake_server.running(tmp_path / "managed") as found:
        yield found


@pytest.fixture
def place(server: UnityServer) -> Place:
    return Place(server.url)


class TestFakeServer(Contract):
    """The contract, kept by the fake server."""


# --- the server and the network


def commits_to(name: str) -> str:
    return rf"^POST .*/tables/{name.rpartition('.')[2]}$"


@pytest.mark.parametrize("kind", ["done_and_drop", "drop", "done_and_status", "status"])
def test_a_commit_whose_answer_is_lost_happens_once(
    place: Place, server: UnityServer, kind: str, quick: None
) -> None:
    log = place.create(NAME)
    server.faults.append(Fault(commits_to(NAME), kind, 1, 503 if kind == "status" else 500, "down"))
    log.write(pa.table({"id": [3]}))
    assert ids(place.log(NAME)) == [1, 2, 3]
    assert server.table(*NAME.split(".")).latest == 1
    assert sorted(published(log)) == [f"{version:020}.json" for version in range(2)]


@pytest.mark.parametrize("status", [202, 204, 302, 408])
def test_an_answer_that_refuses_nothing_is_looked_into(
    place: Place, server: UnityServer, status: int, quick: None
) -> None:
    log = place.create(NAME)
    server.faults.append(Fault(commits_to(NAME), "done_and_status", 1, status, "of a proxy"))
    log.write(pa.table({"id": [3]}))
    assert ids(place.log(NAME)) == [1, 2, 3]
    assert server.table(*NAME.split(".")).latest == 1


@pytest.mark.parametrize("kind", ["done_and_drop", "drop", "done_and_status", "status"])
def test_a_table_whose_registration_is_not_answered_is_made_once(
    place: Place, server: UnityServer, kind: str, quick: None
) -> None:
    server.faults.append(Fault("^POST .*/tables$", kind, 1, 500, "down"))
    log = place.create(NAME)
    assert ids(log) == [1, 2]
    log.write(pa.table({"id": [3]}))
    assert ids(place.log(NAME)) == [1, 2, 3]


def test_a_commit_is_one_request(place: Place, server: UnityServer) -> None:
    log = place.create(NAME)
    log.write(pa.table({"id": [3]}))
    server.asked.clear()
    log.write(pa.table({"id": [4]}))
    sent = [path for method, path in server.asked if method == "POST"]
    assert len(sent) == 2  # the commit, and the note that it is published
    assert "add-commit" in str(server.sent[-2])
    assert server.sent[-1]["updates"] == [
        {"action": "set-latest-backfilled-version", "latest-published-version": 2}
    ]


def test_a_commit_that_stays_unanswered_is_uncertain_and_keeps_its_files(
    place: Place, server: UnityServer, quick: None
) -> None:
    log = place.create(NAME)
    log.snapshot()
    before = set(folder(log).rglob("*.parquet"))
    server.faults += [Fault(commits_to(NAME), "drop", 99), Fault("^GET .*/tables/", "drop", 99)]
    with pytest.raises(DeltaError) as failed:
        log.write(pa.table({"id": [3]}))
    server.faults.clear()
    if isinstance(failed.value, UncertainWriteError):
        assert set(folder(log).rglob("*.parquet")) > before
        assert staged(log)
    assert ids(place.log(NAME)) == [1, 2]


def test_the_writer_that_lost_a_version_follows_the_winner(
    place: Place, server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create(NAME)
    one, other = place.log(NAME), place.log(NAME)
    txn = one.start_transaction()
    other.write(pa.table({"id": [5]}))
    del txn
    one.write(pa.table({"id": [6]}))
    assert ids(place.log(NAME)) == [1, 2, 5, 6]


def test_a_busy_server_is_asked_again(place: Place, server: UnityServer, quick: None) -> None:
    log = place.create(NAME)
    busy = '{"error": {"type": "TooManyRequestsException", "code": 429, "message": "slow down"}}'
    server.faults += [
        Fault("^GET .*/tables/", "status", 2, 503, "busy"),
        Fault(commits_to(NAME), "status", 2, 429, busy),
    ]
    log.write(pa.table({"id": [3]}))
    assert ids(place.log(NAME)) == [1, 2, 3]


def test_a_server_that_is_not_there_is_named(quick: None, tmp_path: Path) -> None:
    gone = Place(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StorageError, match=r"DELTA_COORDINATOR_UNAVAILABLE.*127\.0\.0\.1") as failed:
        gone.catalog.resolve(NAME)
    assert NAME in str(failed.value)


def test_a_server_that_does_not_answer_holds_nobody_for_ever(
    place: Place, server: UnityServer, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create(NAME)
    monkeypatch.setattr(http, "ANSWER_S", 0.05)
    server.faults.append(Fault("^GET .*/tables/", "slow", 9, seconds=0.3))
    with pytest.raises(StorageError, match="DELTA_COORDINATOR_UNAVAILABLE"):
        place.catalog.resolve(NAME)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, ""),
        (404, "<html>nothing here</html>"),
        (200, '{"protocol-version": "2.0", "endpoints": []}'),
        (200, "[]"),
    ],
)
def test_a_server_of_another_version_is_refused(
    place: Place, server: UnityServer, status: int, body: str
) -> None:
    server.faults.append(Fault("^GET .*/delta/v1/config", "status", 1, status, body))
    with pytest.raises(StorageError, match=r"DELTA_UNITY_UNSUPPORTED_SERVER.*0\.5\.0"):
        place.catalog.resolve(NAME)


# --- tokens


def test_a_token_is_sent_and_never_shown(
    server: UnityServer, quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    server.tokens = {SECRET}
    place = Place(server.url, SECRET)
    log = place.create(NAME)
    log.write(pa.table({"id": [3]}))
    catalog = place.catalog
    server.faults += [Fault(commits_to(NAME), "status", 99, 500, f"I was sent {SECRET}")]
    with pytest.raises(DeltaError) as unsure:
        log.write(pa.table({"id": [9]}))
    server.faults.clear()
    full = f'{{"error": {{"type": "ResourceExhaustedException", "code": 429, "message": "{SECRET}"}}}}'
    server.faults += [Fault(commits_to(NAME), "status", 99, 429, full)]
    with pytest.raises(StorageError, match="DELTA_COORDINATOR_FULL") as refused:
        log.write(pa.table({"id": [9]}))
    server.faults.clear()
    shown = [str(unsure.value), repr(unsure.value), str(refused.value)]
    shown += [repr(catalog), repr(catalog.options), repr(log.storage), repr(log), repr(log.snapshot())]
    server.tokens = {"another"}  # it expires; this server even says which one it was sent
    with pytest.raises(StorageError, match="DELTA_UNITY_TOKEN_REFUSED") as failed:
        log.write(pa.table({"id": [4]}))
    shown += [str(failed.value), caplog.text, repr(failed.value)]
    assert not [text for text in shown if SECRET in text]
    server.tokens = {SECRET}
    assert ids(place.log(NAME)) == [1, 2, 3]


def test_a_token_of_the_environment_is_used(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.tokens = {SECRET}
    monkeypatch.setenv("DELTA_DS_UNITY_TOKEN", SECRET)
    place = Place(server.url)
    begun = place.catalog.create(NAME)
    DeltaLog(begun.location, {**place.named(NAME), **begun.open_with}).write(ROWS)
    assert ids(place.log(NAME)) == [1, 2]
    monkeypatch.delenv("DELTA_DS_UNITY_TOKEN")
    with pytest.raises(StorageError, match="DELTA_UNITY_TOKEN_REFUSED"):
        place.catalog.resolve(NAME)


def test_a_token_in_clear_to_another_machine_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    http.Server("http://127.0.0.1:8080", SECRET)
    http.Server("https://catalog.example.com", SECRET)
    http.Server("http://catalog.example.com")
    assert "token_sent_in_clear" not in caplog.text
    http.Server("http://catalog.example.com", SECRET)
    assert "token_sent_in_clear" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "catalog.example.com",
        "ftp://a",
        "http://",
        f"https://user:{SECRET}@host",
        f"https://host/?token={SECRET}",
        f"https://host#{SECRET}",
        f"https://user:{SECRET}@[host",
        f"ftp://user:{SECRET}@host/?token={SECRET}#{SECRET}",
        "http://h?x=1",
        "http://h:port",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InvalidOptionError, match="DELTA_UNITY_INVALID_ADDRESS") as failed:
        UnityCatalog({"coordinatorUrl": url})
    assert SECRET not in str(failed.value)


@pytest.mark.parametrize("suffix", ["", "/", "/api/2.1/unity-catalog", "/api/2.1/unity-catalog/"])
def test_an_address_may_have_the_path_of_the_api(place: Place, suffix: str) -> None:
    place.create(NAME)
    found = UnityCatalog({**place.options, "coordinatorUrl": place.url + suffix}).resolve(NAME)
    assert found.name == NAME
    assert (
        UnityCatalog({**place.options, "coordinatorUrl": place.url + suffix}).describe().endswith(place.url)
    )


# --- names


@pytest.mark.parametrize(
    "table", ["with space", "ünïcode", "a.b", "per%cent", "sl/ash", "back`tick", "q?x#y"]
)
def test_any_name_can_be_a_table_s(place: Place, table: str) -> None:
    name = f"main.sales.`{table.replace('`', '``')}`"
    log = place.create(name)
    log.write(pa.table({"id": [3]}))
    assert ids(place.log(name)) == [1, 2, 3]
    assert place.catalog.resolve(name).name == name
    assert [table.name for table in place.catalog.tables_in("main", "sales")] == [name]


# --- credentials


CLOUD = {
    "s3": (
        "s3://bucket/t",
        {"s3.access-key-id": "AK", "s3.secret-access-key": "SK", "s3.session-token": "ST"},
        {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK", "AWS_SESSION_TOKEN": "ST"},
        {"key": "AK", "secret": "SK", "token": "ST"},
    ),
    "azure": (
        "abfss://c@account.dfs.core.windows.net/t",
        {"azure.sas-token": "sv=1&sig=S"},
        {"AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=S"},
        {"sas_token": "sv=1&sig=S"},
    ),
    "gcs": ("gs://bucket/t", {"gcs.oauth-token": "OT"}, {"GOOGLE_BEARER_TOKEN": "OT"}, None),
}


@pytest.mark.parametrize("cloud", list(CLOUD))
def test_credentials_of_the_catalog_open_the_store(place: Place, server: UnityServer, cloud: str) -> None:
    location, config, options, opens = CLOUD[cloud]
    server.credentials, server.expires = config, 2_000_000_000_000
    place.create(NAME)
    server.table(*NAME.split(".")).location = location
    found = place.catalog.resolve(NAME)
    assert found.storage_options == options
    assert found.expires_ms == 2_000_000_000_000
    assert not [value for value in config.values() if value in repr(found)]
    # As the store's own client takes them.
    taken = to_filesystem_options(parse_address(location), found.storage_options)
    if opens is None:
        assert taken["tokenCredential"] == {"kind": "token", "token": "OT"}
    else:
        assert {name: taken[name] for name in opens} == opens


def test_who_may_only_read_gets_credentials_to_read(place: Place, server: UnityServer) -> None:
    server.credentials = CLOUD["s3"][1]
    place.create(NAME)
    server.table(*NAME.split(".")).location = "s3://bucket/t"
    server.denied = {"READ_WRITE"}
    server.asked.clear()
    assert place.catalog.resolve(NAME).storage_options == CLOUD["s3"][2]
    assert [path for _, path in server.asked if path.endswith("/credentials")] == [
        "/delta/v1/catalogs/main/schemas/sales/tables/t/credentials"
    ] * 2
    server.denied = {"READ_WRITE", "READ"}
    with pytest.raises(StorageError, match="DELTA_UNITY_PERMISSION_DENIED"):
        place.catalog.resolve(NAME)


def test_the_credential_of_the_longest_prefix_is_taken() -> None:
    told = [
        {"prefix": prefix, "config": {"s3.access-key-id": prefix}, "expiration-time-ms": 1}
        for prefix in ("s3://b", "s3://b/tables/", "s3://b/tables/t-other", "s3://other/tables/t")
    ]
    found = vended(told, "s3a://b/tables/t")
    assert found.options == {"AWS_ACCESS_KEY_ID": "s3://b/tables/"}
    assert vended(told, "gs://b/tables/t").options == {}


def test_a_table_in_uniform_is_read_and_not_written(place: Place, server: UnityServer) -> None:
    log = place.create(NAME)
    server.table(*NAME.split(".")).properties["delta.universalFormat.enabledFormats"] = "iceberg"
    assert ids(place.log(NAME)) == [1, 2]
    with pytest.raises(UnsupportedFeatureError, match="DELTA_UNITY_CANNOT_UNIFORM"):
        log.write(pa.table({"id": [3]}))
    assert ids(place.log(NAME)) == [1, 2]


def test_the_fake_server_answers_as_the_real_one(server: UnityServer) -> None:
    recorded = json.loads(exchanges.RECORDED.read_text())
    for told, known in zip(exchanges.course(server.url), recorded, strict=True):
        assert told == known, told["request"]


def test_a_server_that_has_lost_what_it_confirmed_gets_no_other_commit_in_its_place(
    place: Place, server: UnityServer
) -> None:
    log = place.create(NAME)
    log.write(pa.table({"id": [3]}))
    log.write(pa.table({"id": [4]}))
    entry = server.table(*NAME.split("."))
    entry.latest, entry.published, entry.commits = 1, 1, {}
    before = published(log)
    with pytest.raises(StorageError, match=r"DELTA_CATALOG_BEHIND_LOG.*knows no version after 1"):
        place.log(NAME).write(pa.table({"id": [5]}))
    assert published(log) == before
    assert entry.latest == 1
    (folder(log) / f"_delta_log/{2:020}.json").unlink()
    place.log(NAME).write(pa.table({"id": [6]}))
    assert ids(place.log(NAME)) == [1, 2, 3, 6]


@pytest.mark.parametrize(
    "token", [f"{SECRET}\n", f"{SECRET}\r\nX-Other: a", f"{SECRET}\u20ac", f"\x00{SECRET}"]
)
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        http.Server("https://catalog.example.com", token)
    assert caught.value.condition == "DELTA_UNITY_INVALID_TOKEN"
    assert SECRET not in f"{caught.value} {caught.value!r}"


def test_what_a_broken_connection_says_shows_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    server = http.Server("http://127.0.0.1:1", SECRET)
    with pytest.raises(http.NotReached) as refused:
        server.ask("GET", "/tables")
    assert refused.value.__cause__ is refused.value.__context__ is None

    class Broken:
        def request(self, *given: object) -> None:
            raise OSError(f"broken at {given}")

        def close(self) -> None: ...

    monkeypatch.setattr(server, "_connected", lambda: (Broken(), ""))
    with pytest.raises(http.NoAnswer) as caught:
        server.ask("GET", "/tables")
    assert "broken at" in str(caught.value) and SECRET not in str(caught.value)
