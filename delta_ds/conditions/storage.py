"""Conditions of stores: why one cannot be reached, or does not let somebody in."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import StorageError

BUCKET_NOT_FOUND = ErrorCondition(
    "DELTA_STORAGE_ERROR.BUCKET_NOT_FOUND",
    StorageError,
    "58030",
    "cannot {verb} {path}: there is no {kind} {bucket!r} at {store}; correct the address, or create the {kind}; no "
    "write creates one ({reason})",
    parameters=("path", "bucket"),
)
INVALID_CREDENTIALS = ErrorCondition(
    "DELTA_STORAGE_ERROR.INVALID_CREDENTIALS",
    StorageError,
    "58030",
    "cannot {verb} {path}: {store} does not know the credentials, or their secret is wrong; correct them where they "
    "are given ({reason})",
    parameters=("path",),
)
CREDENTIALS_EXPIRED = ErrorCondition(
    "DELTA_STORAGE_ERROR.CREDENTIALS_EXPIRED",
    StorageError,
    "58030",
    "cannot {verb} {path}: the credentials for {store} have expired; get new ones and try again ({reason})",
    parameters=("path",),
)
NO_CREDENTIALS = ErrorCondition(
    "DELTA_STORAGE_ERROR.NO_CREDENTIALS",
    StorageError,
    "58030",
    "cannot {verb} {path}: no credentials for {store} were found in options, session settings, environment, profiles "
    "or the roles of this machine; give some: {how} ({reason})",
    parameters=("path",),
)
ACCESS_DENIED = ErrorCondition(
    "DELTA_STORAGE_ERROR.ACCESS_DENIED",
    StorageError,
    "58030",
    "cannot {verb} {path}: {store} does not allow it with these credentials, or without any; ask for the permission "
    "to {verb} and list there ({reason})",
    parameters=("path",),
)
WRONG_REGION = ErrorCondition(
    "DELTA_STORAGE_ERROR.WRONG_REGION",
    StorageError,
    "58030",
    "cannot {verb} {path}: the bucket is in another region than {store} was asked for; set AWS_REGION or "
    "fs.s3a.endpoint.region, and no endpoint of one region ({reason})",
    parameters=("path",),
)
TLS_FAILED = ErrorCondition(
    "DELTA_STORAGE_ERROR.TLS_FAILED",
    StorageError,
    "58030",
    "cannot {verb} {path}: no secure connection to {store}; {advice} ({reason})",
    parameters=("path",),
)
UNREACHABLE = ErrorCondition(
    "DELTA_STORAGE_ERROR.UNREACHABLE",
    StorageError,
    "58030",
    "cannot {verb} {path}: {store} cannot be reached; correct the address of the store or check the network "
    "({reason})",
    parameters=("path",),
)
NOT_IN_TABLE = ErrorCondition(
    "DELTA_STORAGE_ERROR.NOT_IN_TABLE",
    StorageError,
    "58030",
    "{path} does not count as one of the {kind}: {reason}; {outcome}. Check where it leads and who created it",
    parameters=("path",),
)
NOT_A_FILE = ErrorCondition(
    "DELTA_STORAGE_ERROR.NOT_A_FILE",
    StorageError,
    "58030",
    "cannot read {path}: it is {what}, not a file, and was not opened, because reading it may never end. Restore the "
    "file, or remove what replaced it",
    parameters=("path",),
)
LOGIN_IN_ADDRESS = ErrorCondition(
    "DELTA_STORAGE_ERROR.LOGIN_IN_ADDRESS",
    StorageError,
    "58030",
    "the address {address} begins with a login, `user:password@`, that does not end before the first `/`: write a `/` "
    "of the password as %2F, or leave the login out and give it as options of the store",
    parameters=("address",),
)
SECRET_IN_ADDRESS = ErrorCondition(
    "DELTA_STORAGE_ERROR.SECRET_IN_ADDRESS",
    StorageError,
    "58030",
    "the address {address} is followed by a signature or token, which would count as a part of its name: leave out "
    "what follows it, and give what the store asks for as options ({how})",
    parameters=("address",),
)
PARAMETERS_IN_ADDRESS = ErrorCondition(
    "DELTA_STORAGE_ERROR.PARAMETERS_IN_ADDRESS",
    StorageError,
    "58030",
    "the address {address} is followed by a `?` and parameters, which hold for one file and not for a table: leave "
    "them out, and open the table by the address of its store, with the credentials as options",
    parameters=("address",),
)
