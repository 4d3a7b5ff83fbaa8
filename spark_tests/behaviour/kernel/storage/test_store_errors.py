"""What errors of stores come to: each kind of trouble has a condition of its own, in one line without secrets."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.conditions import storage as conditions
from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import NotADeltaTableError, StorageError
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.store_errors import BucketMissingError, problem_of

ROWS = pa.table({"a": [1]})


class ClientError(Exception):
    """As botocore has it."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(f"An error occurred ({code}) when calling the GetObject operation: why")
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HttpResponseError(Exception):
    """As azure-core has it."""

    def __init__(self, text: str, status: int, code: str | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.error_code = code


class HttpError(Exception):
    """As gcsfs has it."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def named(name: str, text: str = "why", cause: Exception | None = None) -> Exception:
    error: Exception = type(name, (Exception,), {})(text)
    error.__cause__ = cause
    return error


def wrapped(cause: Exception, error: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "condition"),
    [
        (wrapped(ClientError("NoSuchBucket", 404), FileNotFoundError("x")), conditions.BUCKET_NOT_FOUND),
        (HttpResponseError("The specified container", 404, "ContainerNotFound"), conditions.BUCKET_NOT_FOUND),
        (BucketMissingError("x"), conditions.BUCKET_NOT_FOUND),
        (ClientError("InvalidAccessKeyId", 403), conditions.INVALID_CREDENTIALS),
        (ClientError("SignatureDoesNotMatch", 403), conditions.INVALID_CREDENTIALS),
        (
            wrapped(ClientError("SignatureDoesNotMatch", 403), PermissionError("x")),
            conditions.INVALID_CREDENTIALS,
        ),
        (HttpResponseError("x", 403, "AuthenticationFailed"), conditions.INVALID_CREDENTIALS),
        (
            HttpResponseError(
                "Server failed to authenticate the request.\nAuthenticationErrorDetail:Signature not valid in the "
                "specified time frame: Start [..] - Expiry [..]",
                403,
                "AuthenticationFailed",
            ),
            conditions.CREDENTIALS_EXPIRED,
        ),
        (
            HttpResponseError("Server failed to authenticate the request.", 403, "AuthorizationFailure"),
            conditions.INVALID_CREDENTIALS,
        ),
        (HttpError("Invalid Credentials, 401", 401), conditions.INVALID_CREDENTIALS),
        (named("RefreshError", "invalid_grant"), conditions.INVALID_CREDENTIALS),
        (ClientError("ExpiredToken"), conditions.CREDENTIALS_EXPIRED),
        (
            HttpResponseError("Signature not valid in the specified time frame", 403),
            conditions.CREDENTIALS_EXPIRED,
        ),
        (ClientError("AccessDenied", 403), conditions.ACCESS_DENIED),
        (ClientError("403", 403), conditions.ACCESS_DENIED),
        (HttpResponseError("x", 403, "AuthorizationPermissionMismatch"), conditions.ACCESS_DENIED),
        (
            OSError("Forbidden: https://storage\nx does not have storage.objects.list access"),
            conditions.ACCESS_DENIED,
        ),
        (
            HttpError("Anonymous caller does not have storage.objects.get access", 401),
            conditions.NO_CREDENTIALS,
        ),
        (named("NoCredentialsError"), conditions.NO_CREDENTIALS),
        (named("ProfileNotFound"), conditions.NO_CREDENTIALS),
        (named("DefaultCredentialsError"), conditions.NO_CREDENTIALS),
        (
            named("ClientAuthenticationError", "X failed to retrieve a token from the included credentials."),
            conditions.NO_CREDENTIALS,
        ),
        (ClientError("PermanentRedirect", 301), conditions.WRONG_REGION),
        (ClientError("AuthorizationHeaderMalformed"), conditions.WRONG_REGION),
        (named("SSLError", "[SSL: WRONG_VERSION_NUMBER]"), conditions.TLS_FAILED),
        (wrapped(ssl.SSLError("x"), named("ServiceRequestError")), conditions.TLS_FAILED),
        (HttpResponseError("Client sent an HTTP request to an HTTPS server.", 400), conditions.TLS_FAILED),
        (named("EndpointConnectionError"), conditions.UNREACHABLE),
        (wrapped(socket.gaierror(-2, "unknown"), named("ServiceRequestError")), conditions.UNREACHABLE),
        (wrapped(ConnectionRefusedError(111, "refused"), OSError("x")), conditions.UNREACHABLE),
        (ClientError("400", 400), None),
        (ClientError("SlowDown", 503), None),
        (ClientError("NoSuchKey", 404), None),
        (FileNotFoundError("x"), None),
        (TimeoutError("x"), None),
        (ConnectionResetError("x"), None),
    ],
)
def test_the_whole_chain_of_an_error_tells_what_it_is(
    error: Exception, condition: ErrorCondition[StorageError] | None
) -> None:
    found = problem_of(error)
    assert (None if found is None else found.condition) is condition


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, Any]]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "key": "my-key-id",
        "secret": "my-secret",
        "endpoint_url": f"http://{host}:{port}",
        "max_retries": "0",
    }
    server.stop()


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


CALLS: list[Callable[[DeltaLog], Any]] = [
    lambda log: log.snapshot(),
    lambda log: log.write(ROWS),
    lambda log: log.storage.exists("x"),
    lambda log: list(log.storage.list_below()),
]


@pytest.mark.stores
@pytest.mark.parametrize(
    ("given", "condition", "says"),
    [
        (
            {"bucket": "no-such-bucket"},
            "BUCKET_NOT_FOUND",
            "there is no bucket 'no-such-bucket' at http://127",
        ),
        ({"key": None, "secret": None}, "NO_CREDENTIALS", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ({"key": None, "secret": None, "profile": "none"}, "NO_CREDENTIALS", "AWS_PROFILE"),
        ({"endpoint_url": "http://127.0.0.1:1"}, "UNREACHABLE", "http://127.0.0.1:1 cannot be reached"),
        (
            {"endpoint_url": "http://no-such-host.invalid"},
            "UNREACHABLE",
            "no-such-host.invalid cannot be reached",
        ),
        ({"endpoint_url": "https"}, "TLS_FAILED", "one side speaks http and the other https"),
    ],
)
def test_each_kind_of_trouble_says_which_it_is(
    server: dict[str, Any], no_credentials: None, given: dict[str, Any], condition: str, says: str
) -> None:
    import s3fs

    options = {**server, **given}
    bucket = options.pop("bucket", "tables")
    if options["endpoint_url"] == "https":
        options["endpoint_url"] = server["endpoint_url"].replace("http:", "https:")
    log = DeltaLog(f"s3://{bucket}/t", {name: value for name, value in options.items() if value})
    for call in CALLS if condition == "BUCKET_NOT_FOUND" else CALLS[:2]:
        with pytest.raises(StorageError) as caught:
            call(log)
        error = caught.value
        assert error.condition == f"DELTA_STORAGE_ERROR.{condition}"
        assert says in str(error)
        assert f"s3://{bucket}/t" in str(error)
        assert not isinstance(error, FileNotFoundError)
        for text in (str(error), repr(error), str(error.parameters)):
            assert "\n" not in text
            assert "my-key-id" not in text
            assert "my-secret" not in text
    there = s3fs.S3FileSystem(
        key="k", secret="s", endpoint_url=server["endpoint_url"], use_listings_cache=False
    )
    assert "no-such-bucket" not in there.ls("")


class Refusing(BaseHTTPRequestHandler):
    """A store that answers everything with 400 and one code, but HEAD, whose answers have no body."""

    code = ""

    def answer(self) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{self.code}</Code><Message>No.</Message></Error>"
        if "X-Amz-Target" in self.headers:  # DynamoDB
            text = json.dumps({"__type": f"com.amazon.coral.service#{self.code}Exception", "message": "No."})
        self.send_response(400)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    do_GET = do_HEAD = do_PUT = do_POST = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def refusing(request: pytest.FixtureRequest, no_credentials: None) -> Iterator[dict[str, Any]]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    handler = type("Handler", (Refusing,), {"code": request.param})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "endpoint_url": f"http://127.0.0.1:{server.server_port}", "key": "my-key-id", "secret": "my-secret",
            "token": "my-old-token", "max_retries": "0",
        }  # fmt: skip
        server.shutdown()


@pytest.mark.stores
@pytest.mark.parametrize(
    ("refusing", "condition"),
    [
        ("ExpiredToken", "DELTA_STORAGE_ERROR.CREDENTIALS_EXPIRED"),
        ("TokenRefreshRequired", "DELTA_STORAGE_ERROR.CREDENTIALS_EXPIRED"),
        ("InvalidToken", "DELTA_STORAGE_ERROR.INVALID_CREDENTIALS"),
        ("AuthorizationHeaderMalformed", "DELTA_STORAGE_ERROR.WRONG_REGION"),
        ("KeyTooLongError", "DELTA_STORAGE_ERROR"),
    ],
    indirect=["refusing"],
)
def test_a_refusal_without_a_reason_is_asked_for_one(refusing: dict[str, Any], condition: str) -> None:
    storage = open_storage("s3://bucket/t", refusing)
    calls: list[Callable[[], Any]] = [
        lambda: DeltaLog(storage).snapshot(), lambda: DeltaLog(storage).write(ROWS), lambda: storage.exists("x"),
        lambda: storage.status("x"), lambda: storage.read("x"), lambda: storage.create("x", b""),
        lambda: storage.list_from("_delta_log"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.condition == condition
        assert not any(secret in str(caught.value) for secret in ("my-key-id", "my-secret", "my-old-token"))


@pytest.mark.stores
@pytest.mark.parametrize("refusing", ["ExpiredToken"], indirect=True)
def test_an_expired_token_is_told_by_the_broker_of_commits_too(refusing: dict[str, Any]) -> None:
    given = {"logStore": "dynamodb", "ddbTableName": "commits", "ddbEndpoint": refusing["endpoint_url"]}
    with pytest.raises(StorageError, match="cannot use the DynamoDB table 'commits'") as caught:
        open_storage("s3://bucket/t", {**refusing, **given}).list_from("_delta_log")
    assert caught.value.condition == "DELTA_STORAGE_ERROR.CREDENTIALS_EXPIRED"
    assert "my-old-token" not in str(caught.value)


@pytest.mark.stores
def test_an_empty_bucket_holds_no_table_and_takes_one(server: dict[str, Any]) -> None:
    import s3fs

    s3fs.S3FileSystem(key="k", secret="s", endpoint_url=server["endpoint_url"]).mkdir("empty")
    log = DeltaLog("s3://empty/t", server)
    with pytest.raises(NotADeltaTableError):
        log.snapshot()
    log.write(ROWS)
    assert log.snapshot().version == 0


@pytest.mark.stores
def test_http_is_refused_where_it_is_not_allowed(
    server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.exceptions import InvalidOptionError

    for options in ({**server, "allow_http": "false"}, {**server, "AWS_ALLOW_HTTP": False}):
        with pytest.raises(InvalidOptionError, match="allow_http is false"):
            DeltaLog("s3://empty/t", options).snapshot()
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    with pytest.raises(InvalidOptionError, match="allow_http is false"):
        DeltaLog("s3://empty/t", server).snapshot()
    with pytest.raises(StorageError, match="no bucket"):
        DeltaLog("s3://nowhere/t", {**server, "allow_http": "true"}).snapshot()


def test_a_key_file_that_is_not_there_is_not_sent_as_a_token() -> None:
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    from delta_ds.exceptions import InvalidOptionError

    with pytest.raises(InvalidOptionError, match="'/no/such/key.json'.*does not exist"):
        open_storage("gs://lake/t", {"google_service_account": "/no/such/key.json"}).exists("x")
