"""Who asks S3: credentials from every place that users have them in, and which place goes before which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.aws_sessions import blocking_session
from delta_ds.kernel.storage.open import open_storage
from spark_tests.engines.stores.signed_requests import SignedRequests, machine

pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[server] is not installed")

pytestmark = pytest.mark.stores

HADOOP = "org.apache.hadoop.fs.s3a"
SDK = "software.amazon.awssdk.auth.credentials"
PROVIDER = "fs.s3a.aws.credentials.provider"
OF_ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "key-of-environment", "AWS_SECRET_ACCESS_KEY": "s"}
ROLE = "arn:aws:iam::123456789012:role/reader"


@pytest.fixture(scope="module")
def server() -> Iterator[SignedRequests]:
    server = SignedRequests()
    server.make_bucket("lake")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def metadata() -> Iterator[str]:
    with machine() as url:
        yield url


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metadata: str) -> None:
    """A machine with two profiles and a role of its own, and nothing in the environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = key-of-default\naws_secret_access_key = s\n"
        "[etl]\naws_access_key_id = key-of-etl\naws_secret_access_key = s\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata)


def signer(server: SignedRequests, **options: Any) -> str | None:
    storage = open_storage("s3://lake/t", {"AWS_ENDPOINT_URL": server.url, **options})
    signers, _ = server.of(lambda: storage.exists("x"))
    (one,) = signers
    return one


def without_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file")


@pytest.mark.parametrize(
    "options",
    [
        {"key": "mine", "secret": "s"},
        {"fs.s3a.access.key": "mine", "fs.s3a.secret.key": "s"},
        {"fs.s3a.bucket.lake.access.key": "mine", "fs.s3a.secret.key": "s", "fs.s3a.access.key": "other"},
        {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s"},
        {"aws_access_key_id": "mine", "secret": "s"},
        {"key": "mine", "secret": "s", PROVIDER: f"{HADOOP}.SimpleAWSCredentialsProvider"},
    ],
)
def test_keys_of_options_go_before_everything_else(
    server: SignedRequests, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-environment")
    assert signer(server, **options) == "mine"
    assert set(server.tokens) == {None}  # the token belongs to the environment's key


def test_a_profile_of_options_goes_before_the_environment(
    server: SignedRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OF_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert signer(server, AWS_PROFILE="etl") == "key-of-etl"
    assert signer(server, profile="etl") == "key-of-etl"
    by_class = {PROVIDER: f"{HADOOP}.auth.ProfileAWSCredentialsProvider", "fs.s3a.auth.profile.name": "etl"}
    assert signer(server, **by_class) == "key-of-etl"


def test_the_environment_goes_before_profiles_and_these_before_the_machine(
    server: SignedRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OF_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert signer(server) == "key-of-environment"
    for name in OF_ENVIRONMENT:
        monkeypatch.delenv(name)
    assert signer(server) == "key-of-default"
    monkeypatch.setenv("AWS_PROFILE", "etl")
    assert signer(server) == "key-of-etl"
    monkeypatch.delenv("AWS_PROFILE")
    without_profiles(monkeypatch)
    assert signer(server) == "key-of-instance"
    assert set(server.tokens) == {"token-of-instance"}


def test_the_role_of_a_container_is_found(
    server: SignedRequests, monkeypatch: pytest.MonkeyPatch, metadata: str
) -> None:
    without_profiles(monkeypatch)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{metadata}/container")
    assert signer(server) == "key-of-container"
    by_class = {PROVIDER: f"{SDK}.ContainerCredentialsProvider"}
    assert signer(server, **by_class) == "key-of-container"


def test_providers_of_hadoop_ask_their_own_sources_only(
    server: SignedRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OF_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    instance = f"{HADOOP}.auth.IAMInstanceCredentialsProvider"
    environment = f"{SDK}.EnvironmentVariableCredentialsProvider"
    given = {"fs.s3a.access.key": "mine", "fs.s3a.secret.key": "s"}
    assert signer(server, **{PROVIDER: instance}) == "key-of-instance"
    assert signer(server, **{PROVIDER: instance}, **given) == "key-of-instance"
    assert signer(server, **{PROVIDER: f"{instance},{environment}"}) == "key-of-instance"
    assert signer(server, **{PROVIDER: f"{environment}, {instance}"}) == "key-of-environment"
    assert signer(server, **{PROVIDER: f"{SDK}.DefaultCredentialsProvider"}) == "key-of-environment"
    assert signer(server, **{PROVIDER: f"{HADOOP}.AnonymousAWSCredentialsProvider"}) is None
    assert signer(server, aws_skip_signature="true") is None
    for name in OF_ENVIRONMENT:
        monkeypatch.delenv(name)
    with pytest.raises(StorageError) as caught:
        signer(server, **{PROVIDER: environment})
    assert caught.value.condition == "DELTA_STORAGE_ERROR.NO_CREDENTIALS"


@pytest.mark.parametrize(
    "source",
    [
        {"fs.s3a.access.key": "mine", "fs.s3a.secret.key": "s"},
        {"fs.s3a.assumed.role.credentials.provider": f"{HADOOP}.auth.IAMInstanceCredentialsProvider"},
    ],
)
def test_a_role_is_taken_on(server: SignedRequests, source: dict[str, str]) -> None:
    options = {
        PROVIDER: f"{HADOOP}.auth.AssumedRoleCredentialProvider", "fs.s3a.assumed.role.arn": ROLE,
        "fs.s3a.assumed.role.sts.endpoint": server.url, "fs.s3a.assumed.role.session.name": "job", **source,
    }  # fmt: skip
    key = signer(server, **options)
    assert key is not None and key.startswith("ASIA")
    assert None not in server.tokens
    opened = open_storage("s3://lake/t", options)
    found = blocking_session(opened.options).get_credentials()
    assert found is not None
    assert found.get_frozen_credentials().access_key.startswith("ASIA")


def test_a_role_is_taken_on_with_the_token_of_a_web_identity(server: SignedRequests, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token")
    options = {
        "AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ENDPOINT_URL_STS": server.url, "AWS_ROLE_SESSION_NAME": "job",
    }  # fmt: skip
    key = signer(server, **options)
    assert key is not None and key.startswith("ASIA")


def test_every_object_of_a_table_is_encrypted_as_settings_say(server: SignedRequests) -> None:
    import pyarrow as pa

    from delta_ds import DeltaLog

    options = {
        "AWS_ENDPOINT_URL": server.url, "key": "k", "secret": "s", "fs.s3a.encryption.algorithm": "SSE-KMS",
        "fs.s3a.encryption.key": "arn:key",
    }  # fmt: skip
    server.encryption.clear()
    log = DeltaLog("s3://lake/encrypted", options)
    log.write(pa.table({"a": [1, 2]}))
    assert len(server.encryption) >= 2
    assert set(server.encryption) == {"aws:kms"}
    assert log.snapshot().scan().to_arrow().num_rows == 2
