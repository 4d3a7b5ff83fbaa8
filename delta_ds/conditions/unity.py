"""Conditions of Unity Catalog as coordinator and catalog."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
)

UNITY_INVALID_ADDRESS = ErrorCondition(
    "DELTA_UNITY_INVALID_ADDRESS",
    InvalidOptionError,
    "42616",
    "{value!r} is not the address of a Unity Catalog server: that is http:// or https:// with a host, such as "
    "https://catalog.example.com or http://localhost:8080, without user, query and fragment",
    parameters=("value",),
    family="argument",
)
UNITY_INVALID_NAME = ErrorCondition(
    "DELTA_UNITY_INVALID_NAME",
    InvalidOptionError,
    "42602",
    "{name!r} is not the full name of a table of Unity Catalog: that has three parts, catalog.schema.table. Put a "
    "part with other characters than letters, digits and _ between backticks",
    parameters=("name",),
    family="argument",
)
UNITY_INVALID_TOKEN = ErrorCondition(
    "DELTA_UNITY_INVALID_TOKEN",
    InvalidOptionError,
    "42616",
    "the token of Unity Catalog contains a line break, a control character or a letter beyond ASCII, which no token "
    "can; remove it and pass the token, as coordinatorToken, in the catalog's settings, or as DELTA_DS_UNITY_TOKEN",
    family="argument",
)
UNITY_TOKEN_REFUSED = ErrorCondition(
    "DELTA_UNITY_TOKEN_REFUSED",
    StorageError,
    "28000",
    "cannot {verb} {table}: {coordinator} does not accept the token: it is missing, wrong or has expired. Nothing was "
    "changed; give a valid one as coordinatorToken, or as the token of the catalog's settings ({reason})",
    parameters=("table", "coordinator"),
    family="runtime",
)
UNITY_PERMISSION_DENIED = ErrorCondition(
    "DELTA_UNITY_PERMISSION_DENIED",
    StorageError,
    "42501",
    "cannot {verb} {table}: {coordinator} does not allow it to this user. Nothing was changed; ask for the "
    "privileges there ({reason})",
    parameters=("table", "coordinator"),
    family="runtime",
)
UNITY_NAMESPACE_NOT_FOUND = ErrorCondition(
    "DELTA_UNITY_NAMESPACE_NOT_FOUND",
    StorageError,
    "42P01",
    "cannot {verb} {table}: {coordinator} has no such catalog or schema. Check the name, or create them there first "
    "({reason})",
    parameters=("table", "coordinator"),
)
UNITY_NOT_DELTA = ErrorCondition(
    "DELTA_UNITY_NOT_DELTA",
    StorageError,
    "42P01",
    "cannot {verb} {table}: {coordinator} says that it is not a Delta table. Read it in its own format, or choose a "
    "Delta table ({reason})",
    parameters=("table", "coordinator"),
)
UNITY_UNSUPPORTED_SERVER = ErrorCondition(
    "DELTA_UNITY_UNSUPPORTED_SERVER",
    StorageError,
    "0A000",
    "cannot {verb} {table}: {coordinator} does not offer version 1 of the API for Delta tables (/delta/v1), which "
    "Unity Catalog has from version 0.5.0 on. Check the address, or use a newer server ({reason})",
    parameters=("table", "coordinator"),
    family="runtime",
)
UNITY_TABLE_REPLACED = ErrorCondition(
    "DELTA_UNITY_TABLE_REPLACED",
    StorageError,
    "42P01",
    "cannot {verb} table {table}: {coordinator} has another table of that name now, {id} and not {expected}: it was "
    "dropped or renamed, and a new table has its name. Nothing was changed; open the table again by its name",
    parameters=("table", "coordinator", "id"),
    family="state",
)
UNITY_CANNOT_UNIFORM = ErrorCondition(
    "DELTA_UNITY_CANNOT_UNIFORM",
    UnsupportedFeatureError,
    "0A000",
    "cannot commit to table {table}: {coordinator} requires Iceberg metadata with each commit "
    "(delta.universalFormat.enabledFormats), which delta_ds does not write for tables of catalogs. Nothing was "
    "committed. You can read the table, and write it with an engine that supports that metadata",
    parameters=("table", "coordinator"),
    family="operation",
)
UNITY_CANNOT_PLACE = ErrorCondition(
    "DELTA_UNITY_CANNOT_PLACE",
    InvalidOptionError,
    "42616",
    "table {table} cannot be at {location}: {coordinator} chooses the location of the tables whose commits it "
    "manages. Leave the location out",
    parameters=("table", "coordinator", "location"),
    family="argument",
)
UNITY_CANNOT_PERMIT = ErrorCondition(
    "DELTA_UNITY_CANNOT_PERMIT",
    InvalidOptionError,
    "0A000",
    "{coordinator} permits no maintenance of the tables that it manages, and has no means to: leave out "
    "allows={allows}",
    parameters=("coordinator",),
    family="argument",
)
