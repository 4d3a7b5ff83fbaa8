"""What was given for a store, in any vocabulary, becomes options of its filesystem."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.dynamodb import DynamoDBSettings, dynamodb_settings
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.settings.record import milliseconds, seconds
from delta_ds.kernel.storage.settings.translate import (
    settings_of_session,
    to_filesystem_options,
    with_credentials_of_environment,
)
from delta_ds.kernel.storage.settings.vocabulary import vocabulary
from delta_ds.kernel.storage.store_options import is_cloud_name, is_hadoop_setting, uses_dynamodb
from delta_ds.kernel.storage.uri import parse_address

S3 = "s3a://lake/t"
AZURE = "abfss://box@account.dfs.core.windows.net/t"
GCS = "gs://lake/t"
BROKER = "io.delta.storage.S3DynamoDBLogStore"
SECRET = "s3cr3t-value"
HADOOP_AWS = "org.apache.hadoop.fs.s3a"
SDK = "software.amazon.awssdk.auth.credentials"
OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import os

    for name in [
        name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "DELTA_DYNAMO"))
    ]:
        monkeypatch.delenv(name)
    yield


def options_of(path: str, **given: Any) -> dict[str, Any]:
    return to_filesystem_options(parse_address(path), {k.replace("__", "."): v for k, v in given.items()})


@pytest.mark.parametrize(
    ("path", "given", "options"),
    [
        (S3, {"key": "k", "client_kwargs": {"verify": False}}, {"key": "k", "client_kwargs": {"verify": False}}),
        (
            S3,
            {"fs.s3a.access.key": "k", "fs.s3n.secret.key": "s", "fs.s3.session.token": "t"},
            {"key": "k", "secret": "s", "token": "t"},
        ),
        (
            S3,
            {"AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s", "session_token": "t"},
            {"key": "k", "secret": "s", "token": "t"},
        ),
        (S3, {"fs.s3a.bucket.lake.access.key": "own", "fs.s3a.access.key": "all"}, {"key": "own"}),
        (S3, {"fs.s3a.bucket.other.access.key": "other"}, {}),
        (S3, {"fs.s3a.endpoint": "host:9000"}, {"endpoint_url": "https://host:9000"}),
        (
            S3,
            {"fs.s3a.endpoint": "host:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint_url": "http://host:9000", "use_ssl": False},
        ),
        (
            S3,
            {"AWS_ENDPOINT_URL": "http://host:9000", "AWS_ALLOW_HTTP": "true"},
            {
                "endpoint_url": "http://host:9000",
                "config_kwargs": {"s3": {"addressing_style": "path"}},
                "allowHttp": True,
            },
        ),
        (
            S3,
            {"aws_endpoint": "https://host", "aws_virtual_hosted_style_request": "true"},
            {"endpoint_url": "https://host", "config_kwargs": {"s3": {"addressing_style": "virtual"}}},
        ),
        (S3, {"AWS_DEFAULT_REGION": "a", "AWS_REGION": "b"}, {"client_kwargs": {"region_name": "b"}}),
        (S3, {"AWS_DEFAULT_REGION": "a"}, {"client_kwargs": {"region_name": "a"}}),
        (
            S3,
            {"fs.s3a.path.style.access": "true"},
            {"config_kwargs": {"s3": {"addressing_style": "path"}}},
        ),
        (
            S3,
            {"timeout": "30s", "connect_timeout": "2m", "max_retries": "4"},
            {"config_kwargs": {"read_timeout": 30.0, "connect_timeout": 120.0, "retries": {"max_attempts": 4}}},
        ),
        (
            S3,
            {"fs.s3a.connection.timeout": "5000", "fs.s3a.connection.establish.timeout": "7s"},
            {"config_kwargs": {"read_timeout": 5.0, "connect_timeout": 7.0}},
        ),
        (
            S3,
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn:k"},
            {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn:k"}},
        ),
        (
            S3,
            {"aws_server_side_encryption": "AES256"},
            {"s3_additional_kwargs": {"ServerSideEncryption": "AES256"}},
        ),
        (
            S3,
            {
                "fs.s3a.server-side-encryption-algorithm": "SSE-C",
                "fs.s3a.server-side-encryption.key": base64.b64encode(b"0" * 32).decode(),
            },
            {"s3_additional_kwargs": {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": b"0" * 32}},
        ),
        (
            S3,
            {"fs.s3a.proxy.host": "p", "fs.s3a.proxy.port": "3128", "fs.s3a.proxy.username": "u@x",
             "fs.s3a.proxy.password": "w"},
            {"config_kwargs": {"proxies": {"http": "http://u%40x:w@p:3128", "https": "http://u%40x:w@p:3128"}}},
        ),
        (S3, {"fs.s3a.requester.pays.enabled": "true"}, {"requester_pays": True}),
        (S3, {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.AnonymousAWSCredentialsProvider"}, {"anon": True}),
        (S3, {"aws_skip_signature": "1"}, {"anon": True}),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.SimpleAWSCredentialsProvider",
             "fs.s3a.access.key": "k"},
            {"key": "k"},
        ),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": f"{SDK}.EnvironmentVariableCredentialsProvider",
             "fs.s3a.access.key": "k"},
            {"credentialSources": ("env",)},
        ),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.auth.IAMInstanceCredentialsProvider"},
            {"credentialSources": ("instance",)},
        ),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.auth.ProfileAWSCredentialsProvider",
             "fs.s3a.auth.profile.name": "etl"},
            {"profile": "etl", "credentialSources": ("profile",)},
        ),
        (S3, {"fs.s3a.aws.credentials.provider": f"{SDK}.DefaultCredentialsProvider"}, {}),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.auth.AssumedRoleCredentialProvider",
             "fs.s3a.assumed.role.arn": "arn:r", "fs.s3a.assumed.role.session.duration": "30m",
             "fs.s3a.access.key": "k"},
            {"key": "k", "assumedRole": {"role_arn": "arn:r", "duration_seconds": 1800}},
        ),
        (
            S3,
            {"AWS_ROLE_ARN": "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE": "/t"},
            {"assumedRole": {"role_arn": "arn:r", "web_identity_token_file": "/t"}},
        ),
        (S3, {"aws_conditional_put": "etag"}, {"logStore": "conditional"}),
        (
            S3,
            {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": "commits"},
            {"logStore": "dynamodb", "ddbScheme": "s3", "ddbTableName": "commits"},
        ),
        (S3, {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {"allowUnsafeCommits": "true"}),
        (AZURE, {"fs.azure.account.key.Account.dfs.core.windows.net": "k"}, {"account_key": "k"}),
        (AZURE, {"fs.azure.account.key.other.dfs.core.windows.net": "k"}, {}),
        (AZURE, {"azure_storage_access_key": "k", "AZURE_STORAGE_ACCOUNT_NAME": "account"},
         {"account_key": "k", "account_name": "account"}),
        (AZURE, {"azure_storage_sas_token": "sv=1"}, {"sas_token": "sv=1"}),
        (
            AZURE,
            {"fs.azure.account.auth.type": "SAS",
             "fs.azure.sas.fixed.token.account.dfs.core.windows.net": "sv=1"},
            {"sas_token": "sv=1"},
        ),
        (
            AZURE,
            {"fs.azure.account.auth.type.account.dfs.core.windows.net": "OAuth",
             "fs.azure.account.oauth.provider.type": f"{OAUTH}.ClientCredsTokenProvider",
             "fs.azure.account.oauth2.client.id": "c", "fs.azure.account.oauth2.client.secret": "s",
             "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token"},
            {"client_id": "c", "client_secret": "s", "tenant_id": "tenant"},
        ),
        (
            AZURE,
            {"fs.azure.account.auth.type": "OAuth",
             "fs.azure.account.oauth.provider.type": f"{OAUTH}.MsiTokenProvider",
             "fs.azure.account.oauth2.client.id": "c"},
            {"tokenCredential": {"kind": "managed identity", "client_id": "c"}},
        ),
        (
            AZURE,
            {"azure_client_id": "c", "azure_tenant_id": "t", "azure_federated_token_file": "/f"},
            {"tokenCredential": {"kind": "workload identity", "client_id": "c", "tenant_id": "t",
                                 "token_file": "/f"}},
        ),
        (AZURE, {"azure_client_id": "c", "azure_client_secret": "s", "azure_tenant_id": "t"},
         {"client_id": "c", "client_secret": "s", "tenant_id": "t"}),
        (AZURE, {"azure_storage_token": "t"}, {"tokenCredential": {"kind": "token", "token": "t"}}),
        (AZURE, {"azure_use_azure_cli": "true"}, {"tokenCredential": {"kind": "az"}}),
        (
            AZURE,
            {"azure_endpoint": "http://127.0.0.1:1/account", "account_key": "k"},
            {"connection_string": "DefaultEndpointsProtocol=http;BlobEndpoint=http://127.0.0.1:1/account;"
                                  "AccountName=account;AccountKey=k;"},
        ),
        ("abfss://c@a.dfs.core.chinacloudapi.cn/t", {}, {"account_host": "a.blob.core.chinacloudapi.cn"}),
        (GCS, {"fs.gs.project.id": "p", "fs.gs.auth.service.account.json.keyfile": "/k.json"},
         {"project": "p", "token": "/k.json"}),
        (GCS, {"fs.gs.auth.type": "APPLICATION_DEFAULT"}, {"token": "google_default"}),
        (GCS, {"fs.gs.auth.type": "COMPUTE_ENGINE"}, {"token": "cloud"}),
        (GCS, {"fs.gs.auth.type": "UNAUTHENTICATED"}, {"token": "anon"}),
        (GCS, {"google_skip_signature": "true", "google_base_url": "http://h"},
         {"token": "anon", "endpoint_url": "http://h"}),
        (GCS, {"GOOGLE_APPLICATION_CREDENTIALS": "/k.json"}, {"token": "/k.json"}),
        (GCS, {"google_service_account_key": '{"client_email": "e"}'}, {"token": {"client_email": "e"}}),
        (
            GCS,
            {"fs.gs.auth.service.account.email": "e", "fs.gs.auth.service.account.private.key": "a\\nb",
             "fs.gs.auth.service.account.private.key.id": "i"},
            {"token": {"type": "service_account", "client_email": "e", "private_key": "a\nb",
                       "private_key_id": "i", "token_uri": "https://oauth2.googleapis.com/token"}},
        ),
        ("guarded://h/t", {"key": "k"}, {"key": "k"}),
    ],
)  # fmt: skip
def test_every_vocabulary_means_the_same_to_a_filesystem(
    path: str, given: dict[str, Any], options: dict[str, Any]
) -> None:
    translated = to_filesystem_options(parse_address(path), given)
    assert translated == options
    # A storage that is opened with another's options is told nothing new.
    assert to_filesystem_options(parse_address(path), translated) == options


@pytest.mark.parametrize(
    ("path", "given", "both"),
    [
        (
            S3,
            {"fs.s3a.access.key": SECRET, "AWS_ACCESS_KEY_ID": "x"},
            ["fs.s3a.access.key", "AWS_ACCESS_KEY_ID"],
        ),
        (S3, {"key": SECRET, "aws_access_key_id": "x"}, ["key", "aws_access_key_id"]),
        (S3, {"secret": SECRET, "fs.s3a.secret.key": "x"}, ["secret", "fs.s3a.secret.key"]),
        (
            S3,
            {"client_kwargs": {"region_name": "a"}, "AWS_REGION": "b"},
            ["client_kwargs.region_name", "AWS_REGION"],
        ),
        (S3, {"endpoint_url": "http://a", "AWS_ENDPOINT_URL": "http://b"}, ["AWS_ENDPOINT_URL"]),
        (S3, {"logStore": "conditional", "AWS_S3_LOCKING_PROVIDER": "dynamodb"}, ["AWS_S3_LOCKING_PROVIDER"]),
        (S3, {f"{BROKER}.ddb.tableName": SECRET, f"spark.{BROKER}.ddb.tableName": "b"}, ["ddb.tableName"]),
        (AZURE, {"account_key": SECRET, "azure_storage_account_key": "x"}, ["azure_storage_account_key"]),
        (GCS, {"token": SECRET, "google_service_account": "x"}, ["token", "google_service_account"]),
        (GCS, {"token": SECRET, "google_service_account_key": "{}"}, ["google_service_account_key"]),
    ],
)
def test_two_names_of_one_setting_with_different_values_are_refused_naming_both(
    path: str, given: dict[str, Any], both: list[str]
) -> None:
    if path == GCS and given.get("google_service_account_key"):
        given = {**given, "google_service_account_key": '{"a": 1}'}
    with pytest.raises(InvalidOptionError) as caught:
        to_filesystem_options(parse_address(path), given)
    assert all(f"'{name}'" in str(caught.value) or name in str(caught.value) for name in both)
    assert SECRET not in f"{caught.value} {caught.value.parameters}"


@pytest.mark.parametrize(
    ("path", "name", "near"),
    [
        (S3, "AWS_ACESS_KEY_ID", "'AWS_ACCESS_KEY_ID'"),
        (S3, "aws_secret_acces_key", "'aws_secret_access_key'"),
        (S3, "fs.s3a.acces.key", "'fs.s3a.access.key'"),
        (S3, "fs.s3a.path.style.acess", "'fs.s3a.path.style.access'"),
        (S3, "AWS_S3_LOCKING_PROVIDR", "'AWS_S3_LOCKING_PROVIDER'"),
        (S3, "DELTA_DYNAMO_TABLENAME", "'DELTA_DYNAMO_TABLE_NAME'"),
        (AZURE, "azure_storage_acount_key", "'azure_storage_account_key'"),
        (AZURE, "fs.azure.account.kee", "'fs.azure.account.key'"),
        (GCS, "google_service_acount", "'google_service_account'"),
        (GCS, "fs.gs.projekt.id", "'fs.gs.project.id'"),
    ],
)
def test_a_mistyped_name_is_refused_with_the_nearest_one(path: str, name: str, near: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"unknown storage option '{name}'.*did you mean {near}"):
        open_storage(path, {name: "x"})


JAVA_CLASSES = [
    ("s3a", S3, "org.apache.hadoop.fs.s3a.S3AFileSystem"),
    ("s3", S3, "com.amazon.ws.emr.hadoop.fs.EmrFileSystem"),
    ("abfss", AZURE, "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem"),
    ("gs", GCS, "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"),
    ("file", "/tmp/no table", "org.apache.hadoop.fs.LocalFileSystem"),
]


@pytest.mark.parametrize(("scheme", "path", "usual"), JAVA_CLASSES)
def test_a_class_of_java_is_passed_over_if_it_is_the_usual_one_or_of_another_scheme(
    scheme: str, path: str, usual: str
) -> None:
    given = {
        f"fs.{scheme}.impl": usual,
        f"fs.AbstractFileSystem.{scheme}.impl": usual,
        f"fs.{scheme}.impl.disable.cache": "true",
        "fs.lake.impl": "com.example.LakeFileSystem",
    }
    assert open_storage(path, given).url == open_storage(path).url


@pytest.mark.parametrize(("scheme", "path", "usual"), JAVA_CLASSES)
def test_another_class_of_java_for_the_table_is_refused(scheme: str, path: str, usual: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"'fs.{scheme}.impl' names a class of Java for"):
        open_storage(path, {f"fs.{scheme}.impl": "com.example.Encrypting"})


@pytest.mark.parametrize(
    ("path", "given", "says"),
    [
        (S3, {"azure_storage_account_key": "k"}, "is for stores of abfs://"),
        (GCS, {"fs.s3a.access.key": "k"}, "is for stores of s3://"),
        ("memory://a/t", {"AWS_REGION": "k"}, "is for stores of s3://"),
        (S3, {"fs.s3a.aws.credentials.provider": "com.example.Mine"}, "'com.example.Mine'.*no counterpart"),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.SimpleAWSCredentialsProvider"},
            "takes the keys that are given, and none are",
        ),
        (
            S3,
            {
                "fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.TemporaryAWSCredentialsProvider,"
                f"{HADOOP_AWS}.SimpleAWSCredentialsProvider"
            },
            "takes the keys that are given, and none are",
        ),
        (
            S3,
            {"fs.s3a.encryption.algorithm": "CSE-KMS", "fs.s3a.encryption.key": "k"},
            "encryption by the client",
        ),
        (S3, {"fs.s3a.encryption.key": SECRET}, "no 'fs.s3a.encryption.algorithm'"),
        (S3, {"fs.s3a.delegation.token.binding": "x"}, "no counterpart"),
        (S3, {"fs.s3a.path.style.access": "maybe"}, "'maybe'.*true or false"),
        (S3, {"connect_timeout": "soon"}, "a duration such as 30s"),
        (S3, {"AWS_S3_LOCKING_PROVIDER": "zookeeper"}, "it is one of dynamodb"),
        (S3, {"aws_conditional_put": "dynamo:t"}, "AWS_S3_LOCKING_PROVIDER=dynamodb"),
        (S3, {"delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}, "S3DynamoDBLogStore"),
        (S3, {f"{BROKER}.credentials.provider": "com.example.Provider"}, "credentials of the store"),
        (AZURE, {"fs.azure.account.auth.type": "Custom"}, "one of sharedkey, sas, oauth"),
        (
            AZURE,
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": "com.example.Mine",
            },
            "com.example.Mine.*no counterpart",
        ),
        (AZURE, {"fs.azure.account.auth.type": "SharedKey"}, "needs fs.azure.account.key"),
        (AZURE, {"fs.azure.account.oauth2.refresh.token": SECRET}, "service principal"),
        (AZURE, {"azure_endpoint": "http://127.0.0.1:1/a"}, "needs the key of the account"),
        (GCS, {"fs.gs.auth.type": "USER_CREDENTIALS"}, "USER_CREDENTIALS"),
        (GCS, {"google_service_account_key": SECRET}, "JSON of a service account's key"),
        (GCS, {"fs.gs.auth.impersonation.service.account": "x"}, "no counterpart"),
    ],
)
def test_what_cannot_be_honoured_is_refused_saying_why(path: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=says) as caught:
        open_storage(path, given)
    assert SECRET not in str(caught.value)


def test_the_settings_of_the_dynamodb_log_store_are_understood() -> None:
    for prefix in ("", "spark."):
        settings = {
            f"{prefix}delta.logStore.s3a.impl": BROKER,
            f"{prefix}{BROKER}.ddb.tableName": "commits",
            f"{prefix}{BROKER}.ddb.region": "eu-central-1",
            f"{prefix}{BROKER}.ddb.ttl": "60",
        }
        assert all(map(is_hadoop_setting, settings))
        options = to_filesystem_options(parse_address(S3), settings)
        assert uses_dynamodb(options)
        assert dynamodb_settings(options) == DynamoDBSettings("commits", "eu-central-1", ttl=60)
    assert uses_dynamodb(to_filesystem_options(parse_address(S3), {f"{BROKER}.ddb.tableName": "commits"}))
    assert not uses_dynamodb({"key": "x"})


@pytest.mark.parametrize("options", [{"ddbTtlSeconds": "-1"}, {"ddbScheme": "gs"}, {"ddbCreateTable": "yes"}])
def test_broker_options_with_impossible_values_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        dynamodb_settings(options)


@pytest.mark.parametrize("name", ["delta.appendOnly", "io.delta.other", "storage.key", "awsome"])
def test_other_names_are_not_of_stores(name: str) -> None:
    assert not is_hadoop_setting(name)
    assert not is_cloud_name(name)


def of_session(properties: dict[str, str], path: str = "s3://mine/t", **given: Any) -> dict[str, str]:
    return settings_of_session(
        properties, parse_address(path), given, lambda name: properties[name] == "default"
    )


def test_settings_of_a_session_are_those_that_say_how_the_store_is_opened() -> None:
    properties = {
        "fs.s3n.access.key": "all",
        "fs.s3a.bucket.mine.access.key": "mine",
        "fs.s3a.bucket.other.secret.key": "other",
        "fs.s3a.endpoint": " ",
        "fs.s3a.connection.ssl.enabled": "default",
        "fs.s3a.connection.maximum": "500",
        "fs.s3a.acces.key": "mistyped, and none of our business",
        "spark.delta.logStore.s3a.impl": BROKER,
        f"spark.{BROKER}.ddb.tableName": "log",
        "fs.gs.project.id": "project",
        "fs.azure.account.key.one.dfs.core.windows.net": "key",
        "spark.sql.shuffle.partitions": "2",
    }
    assert of_session(properties) == {
        "fs.s3a.access.key": "mine",
        "delta.logstore.s3a.impl": BROKER,
        "io.delta.storage.s3dynamodblogstore.ddb.tablename": "log",
    }
    del properties["spark.delta.logStore.s3a.impl"]
    assert of_session(properties) == {"fs.s3a.access.key": "mine"}
    assert of_session(properties, "gs://mine/t") == {"fs.gs.project.id": "project"}
    assert of_session(properties, "abfss://c@one.dfs.core.windows.net/t") == {"fs.azure.account.key": "key"}
    assert of_session(properties, "abfss://c@two.dfs.core.windows.net/t") == {}
    assert of_session(properties, "hdfs://host/t") == {}


def test_hdfs_is_told_what_hadoop_is_told_names_of_nameservices_in_their_case() -> None:
    given = {
        "fs.defaultFS": "hdfs://Lake", "dfs.nameservices": "Lake", "dfs.ha.namenodes.Lake": "nn1,nn2",
        "dfs.namenode.rpc-address.Lake.nn1": "one:8020", "hadoop.security.authentication": "kerberos",
    }  # fmt: skip
    assert of_session({**given, "fs.s3a.access.key": "k", "dfs.empty": " "}, "hdfs://Lake/t") == given
    assert of_session({"fs.defaultFS": "s3a://bucket"}, "hdfs://Lake/t") == {}
    assert of_session(given, "s3a://bucket/t") == {}
    assert dict(open_storage("hdfs://Lake/t", given).options) == given
    assert of_session(given, "hdfs://Lake/t", **{"fs.defaultfs": "hdfs://other"}).get("fs.defaultFS") is None
    # As the processes of a Python data source get them from Spark.
    folded = {name.lower(): value for name, value in given.items()}
    assert folded != given
    assert dict(open_storage("hdfs://Lake/t", folded).options) == given


def test_a_setting_of_the_bucket_counts_though_the_general_one_is_hadoops_default() -> None:
    properties = {
        "fs.s3a.connection.ssl.enabled": "default",
        "fs.s3a.bucket.mine.connection.ssl.enabled": "false",
    }
    for found in (properties, dict(reversed(properties.items()))):
        assert of_session(found) == {"fs.s3a.connection.ssl.enabled": "false"}


def test_options_go_before_the_session_each_over_its_own_setting() -> None:
    properties = {"fs.s3a.endpoint": "http://session", "fs.s3a.endpoint.region": "session"}
    given: dict[str, Any] = {"AWS_REGION": "option"}
    assert of_session(properties, **given) == {"fs.s3a.endpoint": "http://session"}
    assert of_session(properties, endpoint_url="http://option") == {"fs.s3a.endpoint.region": "session"}


@pytest.mark.parametrize(
    "given", [{"key": "k"}, {"AWS_PROFILE": "p"}, {"fs.s3a.access.key": "k"}, {"anon": True}]
)
def test_credentials_of_an_option_leave_out_all_of_the_session(given: dict[str, Any]) -> None:
    properties = {
        "fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.session.token": "c",
        "fs.s3a.aws.credentials.provider": "com.example.Mine", "fs.s3a.endpoint": "http://session",
    }  # fmt: skip
    assert of_session(properties, **given) == {"fs.s3a.endpoint": "http://session"}


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (S3, "username"),
        (AZURE, "credential"),
        (AZURE, "connection_string"),
        (AZURE, "AZURE_STORAGE_CONNECTION_STRING"),
    ],
)
def test_credentials_in_the_words_of_the_filesystem_leave_out_those_of_the_session(
    path: str, given: str
) -> None:
    properties = {
        "fs.s3a.access.key": "a", "fs.s3a.delegation.token.binding": "x",
        "fs.azure.account.auth.type": "SAS", "fs.azure.sas.token.provider.type": "com.example.Mine",
    }  # fmt: skip
    assert of_session(properties, path, **{given: "mine"}) == {}
    with pytest.raises(InvalidOptionError, match="no counterpart"):
        of_session(properties, path)


@pytest.mark.parametrize(
    ("path", "properties"),
    [
        ("s3://mine/t", {"fs.s3a.delegation.token.binding": "x"}),
        ("s3://mine/t", {"fs.s3a.bucket.mine.delegation.token.binding": "x"}),
        (AZURE, {"fs.azure.account.keyprovider.account.dfs.core.windows.net": "x"}),
        (GCS, {"fs.gs.auth.access.token.provider.impl": "x"}),
    ],
)
def test_a_setting_of_a_session_that_changes_who_asks_and_has_no_counterpart_is_refused(
    path: str, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(properties))):
        of_session(properties, path)
    assert of_session(dict.fromkeys(properties, "default"), path) == {}


def test_an_address_in_an_option_goes_before_that_of_the_session_in_whichever_words() -> None:
    properties = {"fs.s3a.endpoint": "http://session", "fs.s3a.endpoint.region": "session"}
    for given in (
        {"AWS_ENDPOINT_URL": "http://option", "AWS_DEFAULT_REGION": "option"},
        {"endpoint": "http://option", "default_region": "option"},
        {"client_kwargs": {"endpoint_url": "http://option", "region_name": "option"}},
    ):
        assert of_session(properties, **given) == {}
        to_filesystem_options(parse_address(S3), {**of_session(properties, **given), **given})


def test_credentials_for_the_client_itself_leave_out_all_of_the_session() -> None:
    properties = {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.endpoint": "http://session"}
    found = of_session(properties, client_kwargs={"aws_access_key_id": "k", "aws_secret_access_key": "s"})
    assert found == {"fs.s3a.endpoint": "http://session"}


@pytest.mark.parametrize(
    ("path", "properties", "found"),
    [
        (
            "s3://mine/t",
            {"fs.s3a.endpoint": "own", "fs.s3.endpoint": "EMRFS", "fs.s3n.endpoint": "older"},
            {"fs.s3a.endpoint": "own"},
        ),
        (
            "s3://mine/t",
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.server-side-encryption-algorithm": "AES256"},
            {"fs.s3a.encryption.algorithm": "SSE-KMS"},
        ),
        (
            "s3://mine/t",
            {
                "fs.s3a.encryption.algorithm": "SSE-KMS",
                "fs.s3a.bucket.mine.server-side-encryption-algorithm": "AES256",
            },
            {"fs.s3a.server-side-encryption-algorithm": "AES256"},
        ),
        (
            GCS,
            {
                "google.cloud.auth.service.account.json.keyfile": "older",
                "fs.gs.auth.service.account.json.keyfile": "own",
            },
            {"fs.gs.auth.service.account.json.keyfile": "own"},
        ),
    ],
)
def test_of_several_names_of_a_setting_in_a_session_one_counts_in_any_order(
    path: str, properties: dict[str, str], found: dict[str, str]
) -> None:
    assert of_session(properties, path) == found
    assert of_session(dict(reversed(properties.items())), path) == found


def test_settings_of_a_credentials_provider_count_in_a_session_that_names_it() -> None:
    role = {"fs.s3a.assumed.role.arn": "arn", "fs.s3a.assumed.role.session.name": "name"}
    keys = {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
    assert of_session({**role, **keys}) == keys
    simple = {"fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.SimpleAWSCredentialsProvider"}
    assert of_session({**role, **keys, **simple}) == {**keys, **simple}
    # For all buckets there is a role, and this one has keys.
    own = {"fs.s3a.bucket.mine.aws.credentials.provider": f"{HADOOP_AWS}.SimpleAWSCredentialsProvider"}
    assumed = {
        "fs.s3a.aws.credentials.provider": f"{HADOOP_AWS}.auth.AssumedRoleCredentialProvider",
        **role,
    }
    assert of_session({**assumed, **keys, **own}) == {**keys, **simple}
    assert of_session(assumed) == assumed


@pytest.mark.parametrize("package", ["io.delta.storage", "org.apache.spark.sql.delta.storage"])
def test_a_session_may_name_the_log_store_that_delta_spark_has_by_itself(package: str) -> None:
    properties = {"spark.delta.logStore.s3a.impl": f"{package}.S3SingleDriverLogStore"}
    assert of_session({**properties, f"spark.{BROKER}.ddb.tableName": "log"}) == {}
    with pytest.raises(InvalidOptionError, match="S3DynamoDBLogStore"):
        to_filesystem_options(parse_address(S3), of_session({"delta.logStore.s3a.impl": "com.example.Mine"}))


def test_google_is_asked_without_credentials_as_hadoop_does_it() -> None:
    given = {"fs.gs.auth.service.account.enable": "false", "fs.gs.auth.null.enable": "true"}
    assert to_filesystem_options(parse_address(GCS), given) == {"token": "anon"}
    with pytest.raises(InvalidOptionError, match="a user's own login"):
        to_filesystem_options(parse_address(GCS), {**given, "fs.gs.auth.null.enable": "false"})


def test_options_go_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "environment")
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    monkeypatch.setenv("DELTA_DYNAMO_TABLE_NAME", "commits")
    address = parse_address(S3)
    assert to_filesystem_options(address, {}) == {
        "client_kwargs": {"region_name": "environment"}, "logStore": "dynamodb", "ddbScheme": "s3",
        "ddbTableName": "commits",
    }  # fmt: skip
    assert to_filesystem_options(address, {"AWS_REGION": "option", "logStore": "conditional"}) == {
        "client_kwargs": {"region_name": "option"}, "logStore": "conditional",
    }  # fmt: skip


def test_credentials_of_the_environment_are_for_who_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCESS_KEY", "environment")
    address = parse_address(AZURE)
    assert to_filesystem_options(address, {}) == {}  # they do not travel: each process has its own
    assert with_credentials_of_environment(address, {}) == {"account_key": "environment"}
    assert with_credentials_of_environment(address, {"sas_token": "o"}) == {"sas_token": "o"}


def test_settings_name_the_account_that_an_address_leaves_out() -> None:
    box = {"fs.azure.account.key.Box.dfs.core.windows.net": "k"}
    options = to_filesystem_options(parse_address("az://c/t"), box)
    assert options == {"account_name": "box", "account_key": "k"}
    with pytest.raises(InvalidOptionError, match="several: box, other"):
        to_filesystem_options(
            parse_address("az://c/t"), {**box, "fs.azure.account.key.other.dfs.core.windows.net": "x"}
        )


def test_the_emulator_of_azure_is_a_connection_string(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:7/")
    options = options_of("az://box/t", azure_use_emulator="true")
    assert list(options) == ["connection_string"]
    assert (
        "BlobEndpoint=http://127.0.0.1:7/devstoreaccount1;AccountName=devstoreaccount1;"
        in options["connection_string"]
    )
    assert to_filesystem_options(parse_address("az://box/t"), options) == options


def test_no_name_means_two_things_in_one_store() -> None:
    for scheme in ("s3", "abfs", "gs"):
        words = vocabulary(scheme)
        names = [
            name
            for one in dict.fromkeys(words.by_name.values())
            for name in (*one.hadoop, *one.names, *one.bare)
        ]
        assert len(names) == len(set(names))
        assert all(name == name.lower() for name in names)
        assert not [name for name in names if words.refusal(name)]


def test_durations_have_units() -> None:
    assert [seconds(text) for text in ("30s", "2m", "1h", "500ms", "7")] == [30, 120, 3600, 0.5, 7]
    words = ("3 seconds", "2 minutes", "1 hour", "500 milliseconds", "1d", "2 days")
    assert [seconds(text) for text in words] == [3, 120, 3600, 0.5, 86400, 172800]
    assert [milliseconds(text) for text in ("30s", "2m", "1500")] == [30, 120, 1.5]
