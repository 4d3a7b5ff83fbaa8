"""No secret is ever shown: every way in which one can be given, against every place where text goes out.

The clients here fail with all that they were given in their errors, in every spelling.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import pyarrow as pa
import pytest

import delta_ds
from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.events import JsonFormatter
from delta_ds.events.log import ORPHAN_FILES_LEFT
from delta_ds.exceptions import DeltaError, StorageError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.format.options.read import parse_read_options
from delta_ds.kernel.format.options.write import parse_write_options
from delta_ds.kernel.storage import clients, conditional_put
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.kernel.storage.uri import parse_address, without_login
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.secret_ways import MARK, SAS, WAYS, Way, assert_unseen, is_seen, spellings

OPENED = [way for way in WAYS if not way.refused]


class Endpoint:
    """What a client of Azure says of itself."""

    def __init__(self, text: str) -> None:
        self.primary_endpoint = f"https://account.blob.core.windows.net/?{text}"


class Answered(Exception):
    """An error of botocore's form."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(f"An error occurred ({code}) when calling it: {text}")
        self.response = {
            "Error": {"Code": code, "Message": text},
            "ResponseMetadata": {"HTTPStatusCode": 403},
        }


class Quoting:
    """A client whose every error quotes what it was given."""

    def __init__(self, address: Any, given: dict[str, Any], error: Callable[[str], BaseException]) -> None:
        said = [address.with_userinfo, *spellings(address.with_userinfo), *spellings(given)]
        for name, value in os.environ.items():
            if name.startswith(clients.ENVIRONMENT):
                said += spellings(value)
        self.said = " ".join(f"'{text}'" for text in said)
        self.error = error
        self.service_client = Endpoint(" ".join(said))
        self._endpoint = f"https://host/?{self.said}"
        self.given = given

    def _strip_protocol(self, path: str) -> str:
        return path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("delete_empty_folder", "_s3", "loop"):
            raise AttributeError(name)

        def fail(*_: Any, **__: Any) -> Any:
            try:
                raise ValueError(f"before that: {self.said}")
            except ValueError as cause:
                raise self.error(f"denied for {self.said}") from cause

        return fail


ERRORS: dict[str, Callable[[str], BaseException]] = {
    "plain": PermissionError,
    "long": lambda text: RuntimeError("x" * 250 + text),
    "denied": lambda text: Answered(text, "AccessDenied"),
    "unknown keys": lambda text: Answered(text, "InvalidAccessKeyId"),
    "unreachable": ConnectionRefusedError,
    "misnamed": lambda text: TypeError(f"got an unexpected keyword argument 'token': {text}"),
}


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_DS_CACHE", "off")


@pytest.fixture
def told() -> Iterator[list[str]]:
    """All that is logged, in every form, and warned of."""
    found: list[str] = []
    logger = logging.getLogger("delta_ds")

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.extend((logging.Formatter().format(record), JsonFormatter().format(record)))
            found.append(str({k: v for k, v in vars(record).items() if k != "exc_info"}))

    handler, before = Handler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield found
    found.extend(str(one.message) for one in warned)
    logger.removeHandler(handler)
    logger.setLevel(before)


def texts_of_error(error: BaseException | None) -> Iterator[str]:
    """An error in every form in which it can become text, and those that it leads to."""
    while error is not None:
        yield str(error)
        yield repr(error)
        yield repr(error.args)
        yield "".join(traceback.format_exception(error))
        if isinstance(error, DeltaError):
            yield error.text
            yield json.dumps(error.parameters, default=str)
            again = pickle.loads(pickle.dumps(error))
            yield f"{again} {again!r} {again.parameters}"
        error = error.__cause__ or error.__context__


def texts_of_log(log: DeltaLog) -> Iterator[str]:
    """A table in every form in which it can become text."""
    storage = log.storage
    for one in (log, storage, storage.address, storage.options, *vars(storage).values(), vars(log)):
        yield from (str(one), repr(one), f"{one}", f"{one!r:>5}")
    yield str(copy.copy(storage.options))
    yield str(storage.options | {"a": "b"}) + str({"a": "b"} | storage.options) + str(storage.options.copy())
    yield f"{pickle.loads(pickle.dumps(storage))!r} {pickle.loads(pickle.dumps(storage.options))}"
    yield f"{storage.url} {storage.describe('x')} {storage.address.as_written}"


def operations(log: DeltaLog) -> list[Callable[[], Any]]:
    storage, rows = log.storage, pa.table({"id": [1]})
    return [
        log.snapshot, log.history, log.checkpoint, lambda: log.changes(0), lambda: log.write(rows),
        lambda: storage.list_from("a"), lambda: list(storage.list_below("")), lambda: storage.read("a"),
        lambda: storage.read_many(["a", "b"]), lambda: storage.read_range("a", 0, 1), lambda: storage.open("a").read(),
        lambda: storage.status("a"), lambda: storage.exists("a"), lambda: storage.write("a", b""),
        lambda: storage.open_output("a").close(), lambda: storage.delete(["a"]), lambda: storage.create("a", b""),
        lambda: storage.create("_delta_log/00000000000000000000.json", b""), lambda: storage.check_create(),
        lambda: storage.replace_file("a").__enter__(), lambda: storage.resolve("s3://other/x"),
        lambda: storage.read("a"), lambda: storage.create("a", b""), lambda: storage.list_from("_delta_log"),
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_no_text_of_a_table_or_its_errors_shows_a_secret(
    way: Way, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in way.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(conditional_put, "check_supported", lambda *_: None)
    monkeypatch.setattr(conditional_put, "put_if_absent", lambda scheme, fs, path, data: fs.pipe_file(path))
    monkeypatch.setattr("delta_ds.kernel.storage.store_errors._sleep", lambda seconds: None)
    try:
        log = DeltaLog(way.address, way.options)
    except DeltaError as refusal:
        assert way.refused
        assert_unseen(texts_of_error(refusal))
        return
    assert not way.refused
    assert_unseen(texts_of_log(log))
    for kind, error in ERRORS.items():
        fail_with(error, monkeypatch)
        # What becomes of an error does not depend on the operation; that it is mapped at all does.
        for operation in operations(log) if kind == "plain" else operations(log)[-3:]:
            failure = raised_by(operation)
            ORPHAN_FILES_LEFT.log(table=log.storage.url, folder="x", reason=failure)
            assert_unseen(texts_of_error(failure))
    assert told
    assert_unseen(told)


def raised_by(operation: Callable[[], Any]) -> BaseException | None:
    try:
        operation()
    except Exception as error:
        return error
    return None


def fail_with(error: Callable[[str], BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clients that are made from now on fail with this."""

    def opened(address: Any, given: Any) -> Any:
        return Quoting(address, clients.with_credentials_of_environment(address, given), error)

    def connected(settings: Any, address: Any, options: Any) -> Any:
        return Quoting(address, dict(options), error)

    clients._clients.clear()
    monkeypatch.setattr(clients, "_open", opened)
    monkeypatch.setattr("delta_ds.kernel.storage.dynamodb._connect", connected)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_parsed_options_show_no_secret(way: Way) -> None:
    given = {"path": way.address, **{f"storage.{name}": value for name, value in way.options.items()}}
    assert_unseen([repr(SecretOptions(way.options)), f"{SecretOptions(given)}"])
    for parse in (
        lambda: repr(parse_read_options(given, "UTC")),
        lambda: parse_read_options({**given, "versionAsOf": "x"}, "UTC"),
        lambda: parse_read_options({**given, "nosuch": "x"}, "UTC"),
        lambda: repr(parse_write_options(given, overwrite=False, session_time_zone="UTC")),
    ):
        assert_unseen(texts_of_error(raised_by(parse)))
    for parsed in (
        parse_read_options(given, "UTC"),
        parse_write_options(given, overwrite=False, session_time_zone="UTC"),
    ):
        assert_unseen((repr(parsed), str(parsed)))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_command_line_shows_no_secret(
    way: Way, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("typer")
    for name, value in way.environment.items():
        monkeypatch.setenv(name, value)
    fail_with(ERRORS["denied"], monkeypatch)
    monkeypatch.setattr("delta_ds.kernel.storage.store_errors._sleep", lambda seconds: None)
    texts = {name: value for name, value in way.options.items() if isinstance(value, str)}
    given = [part for name, value in texts.items() for part in ("-o", f"{name}={value}")]
    for command in (
        ["detail", way.address, *given], ["detail", way.address, *given, "--json"], ["history", way.address, *given],
        ["detail", f"{way.address}@v1", *given, "--version", "2"], ["detail", way.address, *given, "--nosuch"],
        [way.address], ["detail", way.address, *given, "--limit", "x"], ["bench", "--scratch", way.address, *given],
        # A blank in place of the equals sign, and a value without its name.
        *(["detail", way.address, "-o", name, value] for name, value in texts.items()),
        *(["detail", way.address, "-o", value] for value in texts.values() if "=" not in value),
    ):  # fmt: skip
        assert main(command) != 0
    out, err = capfd.readouterr()
    assert_unseen((out, err))


# --- the secret is there for those who need it


class Store(fsspec.AbstractFileSystem):  # type: ignore[misc,unused-ignore]
    """A filesystem that takes every option."""

    cachable = False
    made: list[dict[str, Any]] = []

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__()
        self.made.append(given)


@pytest.mark.parametrize("way", OPENED, ids=lambda way: way.name)
def test_a_secret_reaches_the_client_of_its_store(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in way.environment.items():
        monkeypatch.setenv(name, value)
    seen: list[Any] = []

    def url_to_fs(url: str, **options: Any) -> tuple[Any, str]:
        seen.extend((url, options))
        return Store(), url

    monkeypatch.setattr(fsspec.core, "url_to_fs", url_to_fs)
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda scheme: Store)
    monkeypatch.setattr(clients, "_check", lambda *_: None)
    monkeypatch.setattr("delta_ds.kernel.storage.clients.limit", lambda *_: None)
    monkeypatch.setattr("delta_ds.kernel.storage.aws_sessions.azure_credential", lambda given: dict(given))
    monkeypatch.setattr("delta_ds.kernel.storage.aws_sessions.google_credential", lambda given: dict(given))
    monkeypatch.setattr("delta_ds.kernel.storage.aws_sessions.async_session", lambda given: None)
    clients._clients.clear()
    storage = pickle.loads(pickle.dumps(open_storage(way.address, way.options)))
    if storage.address.parameters:
        with pytest.raises(StorageError, match="leave them out"):
            clients.client(storage.address, storage.options)
        return
    clients.client(storage.address, storage.options)
    by_itself = {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "HTTPS_PROXY",
                 "AZURE_STORAGE_SAS_TOKEN", "FSSPEC_GUARDED_PASSWORD"}  # fmt: skip
    # What the clients find in the environment themselves is left there; of abfs:// what precedes the @ is no login.
    if not by_itself & set(way.environment) and way.name not in (
        "login of a container",
        "endpoint of DynamoDB",
    ):
        assert any(is_seen(text) for one in (*seen, storage.options) for text in spellings(one))


def test_a_login_of_an_address_is_used_as_it_was_meant() -> None:
    assert parse_address("s3://AKIA:se%2Fcret@bucket/t").userinfo == "AKIA:se%2Fcret"
    assert str(parse_address("hdfs://host:8020/a@v5")) == "hdfs://host:8020/a@v5"
    assert str(parse_address("s3://bucket/a:b@c/t?x=1")) == "s3://bucket/a:b@c/t?x=1"


# --- what a table keeps


def test_nothing_that_is_written_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    class Kept(MemoryFileSystem):
        protocol = "kept"
        cachable = False

        def __init__(self, *arguments: Any, **given: Any) -> None:
            super().__init__()

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.partition("://")[2].rpartition("@")[2] if "://" in path else path

    fsspec.register_implementation("kept", Kept, clobber=True)
    monkeypatch.setenv("DELTA_DS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("delta_ds.kernel.log.cache._WORTHWHILE_COMMITS", 1)
    reports: list[str] = []
    options = {"allowUnsafeCommits": "true", "password": MARK}

    def log_of(name: str) -> DeltaLog:
        return DeltaLog(f"kept://user:{quote(MARK, safe='')}@host/{name}", options)

    with delta_ds.add_listener(lambda report: reports.append(repr(report))) as listening:
        log = log_of("source")
        for number in range(3):
            log.write(pa.table({"id": [number]}))
        log.checkpoint()
        shallow_clone(log, log_of("shallow"))
        deep_clone(log, log_of("deep"))
        listening.wait(10)
    shown: list[str] = []
    for one in map(log_of, ("source", "shallow", "deep")):
        snapshot = one.snapshot()
        shown += [
            str(one.history()),
            str(snapshot.detail()),
            repr(snapshot),
            str(snapshot.files().to_pylist()),
        ]
        shown += [
            snapshot.scan().explain()._repr_html_(),
            repr(snapshot.scan()),
            str(snapshot.scan().tasks()),
        ]
    written = [name + data.getvalue().decode("latin-1") for name, data in Kept.store.items()]
    cached = [f"{file} {file.read_bytes()!r}" for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert len(written) > 10 and cached and reports
    assert_unseen((*written, *cached, *shown, *reports))


def test_tracebacks_of_events_show_no_secret(told: list[str]) -> None:
    from delta_ds.events.spark import ANSWER_FAILED

    try:
        raise ValueError(f"https://user:{MARK}@host/?sig={MARK} AccountKey={MARK}; 'secret': '{MARK}'")
    except ValueError:
        ANSWER_FAILED.log_traceback(what="a question")
    assert told
    assert_unseen(told)


# --- what others have written, and what was given in a wrong place


@pytest.mark.parametrize(
    "path", [f"s3://AKIA:{quote(MARK, safe='')}@bucket/x.parquet", f"memory://m/other/x.parquet?{SAS}",
             f"abfss://c@account.dfs.core.windows.net/x.parquet?{SAS}", f"s3://AKIA:{MARK}@bucket/x.parquet"],
)  # fmt: skip
def test_an_address_in_a_log_is_shown_without_its_secrets(path: str, tmp_path: Path, told: list[str]) -> None:
    table = TableBuilder(tmp_path / "t")
    table.create(pa.schema([("id", pa.int64())]))
    add = {"path": path, "size": 1, "modificationTime": 1, "dataChange": True, "partitionValues": {}}
    table.commit({"add": add})
    log = DeltaLog(tmp_path / "t")
    snapshot = log.snapshot()
    assert raised_by(lambda: snapshot.scan().to_arrow()) is not None
    for read in (
        lambda: snapshot.scan().to_arrow(), lambda: snapshot.scan().tasks(), lambda: list(log.blame().to_batches()),
        lambda: shallow_clone(log, DeltaLog(tmp_path / "shallow")), lambda: optimize(log),
        lambda: deep_clone(log, DeltaLog(tmp_path / "deep")),
    ):  # fmt: skip
        assert_unseen(texts_of_error(raised_by(read)))
    assert_unseen(told)


def test_a_clone_records_no_login_of_its_sources_log() -> None:
    table = parse_address("s3://bucket/t")
    assert without_login(table, f"s3://AKIA:{quote(MARK, safe='')}@bucket/x%20y") == "s3://bucket/x%20y"
    assert without_login(table, "s3a://bucket/x@y") == "s3a://bucket/x@y"
    with pytest.raises(StorageError, match="of a path in its log"):
        without_login(table, f"s3://bucket/x?{SAS}")


def test_a_secret_in_a_wrong_place_is_not_shown() -> None:
    anything: Any = DeltaLog
    for call in (
        lambda: anything("s3://bucket/t", MARK),
        lambda: anything([f"s3://AKIA:{quote(MARK, safe='')}@bucket/t"]),
        lambda: anything(storage_options=MARK, path="memory://x"),
        lambda: anything("memory://x").write(pa.table({"id": [1]}), AWS_SECRET_ACCESS_KEY=MARK),
        lambda: anything("memory://x").write(pa.table({"id": [1]}), options=MARK),
        lambda: anything("s3://bucket/t", {"key": "k", "azure_client_secret": MARK}),
        lambda: anything("s3://bucket/t", {"fs.s3a.secret.key": MARK, "secret": "other"}),
        lambda: anything("s3://bucket/t", {"nosuch.secret": MARK}).snapshot(),
    ):
        failure = raised_by(call)
        assert failure is not None
        assert_unseen(texts_of_error(failure))


def test_a_coordinator_keeps_no_secrets(tmp_path: Path) -> None:
    tables = delta_ds.catalog("sqlite", str(tmp_path / "c.db"))
    for options in (
        {"fs.azure.account.key": MARK},
        {"endpoint_url": f"http://u:{MARK}@h"},
        {"client_kwargs": {"aws_secret_access_key": MARK}},
    ):
        with pytest.raises(DeltaError) as caught:
            tables.create("main.sales.t", str(tmp_path / "t"), storage_options=options)
        if caught.value.condition != "DELTA_COORDINATOR_KEEPS_NO_SECRETS":
            raise caught.value
        assert_unseen(texts_of_error(caught.value))
    tables.create(
        "main.sales.t",
        str(tmp_path / "t"),
        storage_options={"endpoint_url": "http://h", "sse_kms_key_id": "k"},
    )
    assert not is_seen((tmp_path / "c.db").read_bytes().decode("latin-1"))
