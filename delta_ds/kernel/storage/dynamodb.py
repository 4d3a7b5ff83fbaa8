"""Commit entries in DynamoDB, as delta-storage's S3DynamoDBLogStore writes them.

The layout is that of delta-storage's `S3DynamoDBLogStore`, so that its writers and these can share a table:
key `tablePath` (hash) and `fileName` (range), attributes `tempPath` (relative to `_delta_log`), `complete`
(the text `true` or `false`) and, once complete, `expireTime` (seconds since the epoch, for DynamoDB's TTL).

Source: delta-io/delta, storage-s3-dynamodb, `S3DynamoDBLogStore` and `ExternalCommitEntry`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from delta_ds.exceptions import InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.storage import conditional_put, store_errors, store_options
from delta_ds.kernel.storage.store_errors import raise_alone
from delta_ds.kernel.storage.store_options import hidden
from delta_ds.kernel.storage.uri import Address
from delta_ds.records import dataclass, field, replace

_DEFAULT_TABLE = "delta_log"
_DEFAULT_REGION = "us-east-1"
_DEFAULT_SCHEME = "s3a"  # as open-source Spark spells S3
_DEFAULT_TTL = 24 * 60 * 60  # seconds
SCHEMES = ("s3a", "s3", "s3n")


@dataclass(frozen=True, slots=True)
class DynamoDBSettings:
    """Where entries are kept, from the storage options.

    Attributes
    ----------
    table, region, endpoint
        The DynamoDB table; the endpoint is None for Amazon's own.
    ttl
        Seconds that an entry is kept after its commit is in place.
    scheme
        The scheme in `tablePath`. All writers of a table must use the same.
    create_table
        Whether a missing DynamoDB table is made.
    """

    table: str = _DEFAULT_TABLE
    region: str = _DEFAULT_REGION
    endpoint: str | None = field(default=None, repr=False)
    ttl: int = _DEFAULT_TTL
    scheme: str = _DEFAULT_SCHEME
    create_table: bool = False


def dynamodb_settings(options: Mapping[str, Any]) -> DynamoDBSettings:
    """Read the settings out of storage options.

    Raises
    ------
    InvalidOptionError
        A value that cannot be.
    """
    own = store_options.store_options(options)
    ttl = own.get(store_options.DDB_TTL, str(_DEFAULT_TTL))
    scheme = own.get(store_options.DDB_SCHEME, _DEFAULT_SCHEME)
    if not ttl.isdecimal():
        raise InvalidOptionError(
            f"invalid value {ttl!r} for the storage option {store_options.DDB_TTL!r}: it is in seconds"
        )
    if scheme not in SCHEMES:
        raise InvalidOptionError(
            f"invalid value {scheme!r} for the storage option {store_options.DDB_SCHEME!r}: "
            f"it is one of {', '.join(SCHEMES)}"
        )
    return DynamoDBSettings(
        table=own.get(store_options.DDB_TABLE, _DEFAULT_TABLE),
        region=own.get(store_options.DDB_REGION, _DEFAULT_REGION),
        endpoint=own.get(store_options.DDB_ENDPOINT),
        ttl=int(ttl),
        scheme=scheme,
        create_table=store_options.flag(options, store_options.DDB_CREATE_TABLE),
    )


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One commit, as DynamoDB knows it.

    Attributes
    ----------
    file_name
        `<version>.json`.
    temp_path
        Where its content lies, relative to `_delta_log`.
    complete
        Whether the content was copied to its place.
    expire_time
        Seconds since the epoch after which the entry may go; None while it is incomplete.
    """

    file_name: str
    temp_path: str
    complete: bool
    expire_time: int | None = None

    def completed(self, now: float, ttl: int) -> CommitEntry:
        """The same entry, complete; it may go `ttl` seconds after `now`."""
        return replace(self, complete=True, expire_time=int(now) + ttl)


class CommitEntries:
    """The entries of one Delta table. Connects when first needed, once per process."""

    def __init__(self, address: Address, options: Mapping[str, Any]) -> None:
        self.settings = dynamodb_settings(options)
        self._address = address
        self._options = options
        self._opened: tuple[int, Any] | None = None

    def table_path(self, scheme: str | None = None) -> str:
        """The hash key of the Delta table."""
        return f"{scheme or self.settings.scheme}://{self._address.authority}{self._address.path}"

    def get(self, file_name: str) -> CommitEntry | None:
        """The entry of a commit, read consistently."""
        key = {"tablePath": {"S": self.table_path()}, "fileName": {"S": file_name}}
        with self._errors():
            answer = self._client.get_item(TableName=self.settings.table, Key=key, ConsistentRead=True)
        item = answer.get("Item")
        return _entry(item) if item else None

    def latest(self, scheme: str | None = None) -> CommitEntry | None:
        """The entry of the highest version that has one."""
        with self._errors():
            answer = self._client.query(
                TableName=self.settings.table,
                KeyConditionExpression="tablePath = :path",
                ExpressionAttributeValues={":path": {"S": self.table_path(scheme)}},
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )
        return _entry(answer["Items"][0]) if answer["Items"] else None

    def add(self, entry: CommitEntry) -> None:
        """Put an entry where there is none.

        Raises
        ------
        FileExistsError
            The commit has an entry, perhaps this one: the client repeats requests whose answer got lost.
        UncertainWriteError
            No answer.
        StorageError
            Refused; nothing was written.
        """
        with self._errors():
            self._client.put_item(
                TableName=self.settings.table,
                Item=self._item(entry),
                ConditionExpression="attribute_not_exists(fileName)",
            )

    def put(self, entry: CommitEntry) -> None:
        """Put an entry over the one that is there."""
        with self._errors():
            self._client.put_item(TableName=self.settings.table, Item=self._item(entry))

    def _item(self, entry: CommitEntry) -> dict[str, dict[str, str]]:
        item = {
            "tablePath": {"S": self.table_path()},
            "fileName": {"S": entry.file_name},
            "tempPath": {"S": entry.temp_path},
            "complete": {"S": "true" if entry.complete else "false"},
        }
        if entry.expire_time is not None:
            item["expireTime"] = {"N": str(entry.expire_time)}
        return item

    @property
    def _client(self) -> Any:
        # Connections do not survive a fork.
        if self._opened is None or self._opened[0] != os.getpid():
            client = _connect(self.settings, self._address, self._options)
            if self.settings.create_table:
                _make_table(client, self.settings.table)
            self._opened = (os.getpid(), client)
        return self._opened[1]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except Exception as error:
            code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
            if code == "ConditionalCheckFailedException":
                raise_alone(FileExistsError("there is an entry already"))
            self._opened = None  # what it was refused for may be given by the next call
            text = self._hidden(f"{type(error).__name__}: {error}")
            where = f"the DynamoDB table {self.settings.table!r} in {self.settings.region}"
            if code == "ResourceNotFoundException":
                text = (
                    "it does not exist; correct ddbTableName and ddbRegion, or set the storage option "
                    f"{store_options.DDB_CREATE_TABLE}=true to have it made"
                )
            if conditional_put.meaning_of_error(error) == "unknown":
                raise_alone(UncertainWriteError(f"{where} gave no answer: {text}"))
            problem = store_errors.problem_of(error)
            if problem is not None:
                what = f"{where}, which brokers commits of {self._address}"
                store = self._hidden(self.settings.endpoint or "DynamoDB")
                raise_alone(problem.error(self._address, what, "use", store, self._hidden))
            raise_alone(StorageError(f"{where} cannot broker commits of {self._address}: {text}"))

    def _hidden(self, text: str) -> str:
        return hidden(text, self._address, self._options)


def _entry(item: Mapping[str, Mapping[str, str]]) -> CommitEntry:
    expires = item.get("expireTime")
    return CommitEntry(
        item["fileName"]["S"],
        item["tempPath"]["S"],
        item["complete"]["S"] == "true",
        int(expires["N"]) if expires else None,
    )


def _connect(settings: DynamoDBSettings, address: Address, options: Mapping[str, Any]) -> Any:
    try:
        from delta_ds.kernel.storage.aws_sessions import blocking_session

        session = blocking_session(options)
    except ImportError as error:
        raise StorageError(f"cannot open DynamoDB: {error}; pip install 'delta_ds[s3]'") from None
    user, _, password = address.userinfo.partition(":")
    key = options.get("key") or unquote(user)
    if store_options.ASSUMED_ROLE in options:
        key = password = ""
        options = {name: value for name, value in options.items() if name not in ("secret", "token")}
    return session.create_client(
        "dynamodb",
        region_name=settings.region,
        endpoint_url=settings.endpoint,
        aws_access_key_id=key or None,
        aws_secret_access_key=(options.get("secret") or unquote(password)) or None,
        aws_session_token=options.get("token"),
    )


def _make_table(client: Any, name: str) -> None:
    from botocore.exceptions import ClientError  # type: ignore[import-untyped,unused-ignore]

    try:
        client.describe_table(TableName=name)
        return
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
    columns = ("tablePath", "fileName")
    try:
        client.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": c, "AttributeType": "S"} for c in columns],
            KeySchema=[
                {"AttributeName": c, "KeyType": kind}
                for c, kind in zip(columns, ("HASH", "RANGE"), strict=True)
            ],
            BillingMode="PAY_PER_REQUEST",
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":  # somebody made it just now
            raise
    client.get_waiter("table_exists").wait(TableName=name)
