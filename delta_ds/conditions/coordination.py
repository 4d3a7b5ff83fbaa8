"""Conditions of commit coordinators and of the tables that they manage, Unity Catalog among them."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

UNKNOWN_COMMIT_COORDINATOR = ErrorCondition(
    "DELTA_UNKNOWN_COMMIT_COORDINATOR",
    InvalidOptionError,
    "42616",
    "there is no commit coordinator {value!r}: the storage option commitCoordinator is one of {known:list}{hint}",
    parameters=("value",),
    family="argument",
)
COORDINATOR_OPTION_MISSING = ErrorCondition(
    "DELTA_COORDINATOR_OPTION_MISSING",
    InvalidOptionError,
    "42616",
    "the storage option {option!r} is missing: {what}",
    parameters=("option",),
    family="argument",
)
COORDINATOR_NEEDS_NAME = COORDINATOR_OPTION_MISSING.also(
    "the storage option {option!r} is missing: {coordinator} does not find tables by their address {location}; name "
    "the table, such as catalogTable=main.sales.orders",
    parameters=("option", "coordinator", "location"),
)
COORDINATOR_KEEPS_NO_SECRETS = ErrorCondition(
    "DELTA_COORDINATOR_KEEPS_NO_SECRETS",
    InvalidOptionError,
    "42616",
    "{coordinator} keeps the storage options of table {table} and gives them to everybody, and {option!r} may be "
    "secret: nothing was done; pass it to delta_ds.catalog(...), or to each program that opens the table",
    parameters=("option", "coordinator", "table"),
    family="argument",
)
COORDINATOR_LOCATION_MISSING = COORDINATOR_OPTION_MISSING.also(
    "{coordinator} does not choose locations of tables: give the location of the new table {table}",
    parameters=("coordinator", "table"),
)
COORDINATOR_AND_DYNAMODB = UNKNOWN_COMMIT_COORDINATOR.also(
    "commitCoordinator and logStore=dynamodb (or ddbTableName) exclude each other: give one of them"
)
UNKNOWN_MAINTENANCE = ErrorCondition(
    "DELTA_UNKNOWN_MAINTENANCE_OPERATION",
    InvalidOptionError,
    "42616",
    "there is no maintenance operation {value!r} that a coordinator could permit; there are {known:list}",
    parameters=("value",),
    family="argument",
)
COORDINATOR_UNAVAILABLE = ErrorCondition(
    "DELTA_COORDINATOR_UNAVAILABLE",
    StorageError,
    "58030",
    "cannot {verb} table {table}: {coordinator} does not answer or refuses: {reason}",
    parameters=("table", "coordinator"),
    family="runtime",
)
COORDINATOR_FULL = ErrorCondition(
    "DELTA_COORDINATOR_FULL",
    StorageError,
    "54000",
    "cannot commit to table {table}: {coordinator} stores as many commits as it can that are not yet in the log, and "
    "they could not be put there. Nothing was committed; check the table's store ({reason})",
    parameters=("table", "coordinator"),
    family="runtime",
)
# No `NotADeltaTableError`, which says that a new table can be made at the place.
COORDINATOR_TABLE_NOT_FOUND = ErrorCondition(
    "DELTA_COORDINATOR_TABLE_NOT_FOUND",
    StorageError,
    "42P01",
    "{coordinator} knows no table {table}. Check the name and the location, or create the table there first",
    parameters=("table", "coordinator"),
)
COORDINATOR_TABLE_EXISTS = ErrorCondition(
    "DELTA_COORDINATOR_TABLE_EXISTS",
    InvalidOptionError,
    "42P07",
    "{coordinator} has a table {table} already, at {location}; nothing was changed. Use another name and location, or "
    "drop that one first",
    parameters=("table", "coordinator", "location"),
)
COORDINATOR_LOCATION_MISMATCH = ErrorCondition(
    "DELTA_COORDINATOR_LOCATION_MISMATCH",
    InvalidOptionError,
    "42616",
    "table {table} of {coordinator} is at {location}, not at {path}; nothing was read or written. Use the table's "
    "own path, or the name of the table at that path",
    parameters=("table", "coordinator", "location", "path"),
    family="argument",
)
COORDINATOR_CANNOT = ErrorCondition(
    "DELTA_COORDINATOR_CANNOT",
    UnsupportedOperationError,
    "0A000",
    "{coordinator} cannot {what}",
    parameters=("coordinator",),
    family="operation",
)
CATALOG_MANAGED_MISMATCH = ErrorCondition(
    "DELTA_CATALOG_MANAGED_MISMATCH",
    UnsupportedFeatureError,
    "KD00G",
    family="state",
)
MANAGED_WITHOUT_FEATURE = CATALOG_MANAGED_MISMATCH.also(
    "table {table} is managed by a commit coordinator, but its protocol lacks the feature catalogManaged, so that "
    "others may commit past the coordinator; it is neither read nor written. Drop it there, and use it by path",
    parameters=("table",),
)
FEATURE_WITHOUT_MANAGER = CATALOG_MANAGED_MISMATCH.also(
    "table {table} has the feature catalogManaged, but the commit coordinator that was named does not manage its "
    "commits; it is neither read nor written. Name the coordinator that does",
    parameters=("table",),
)
NOT_CATALOG_MANAGED = CATALOG_MANAGED_MISMATCH.also(
    "table {table} is not taken by {coordinator}: it lacks the feature catalogManaged. A table is catalog-managed from "
    "its creation or never: create one, and copy the rows",
    parameters=("table", "coordinator"),
)
MAINTENANCE_NOT_ALLOWED = ErrorCondition(
    "DELTA_CATALOG_MANAGED_MAINTENANCE_BLOCKED",
    UnsupportedOperationError,
    "42KD4",
    "{operation} is not allowed on table {table}: {coordinator} manages it and does not permit {permission}. Nothing "
    "was changed; the operator of the coordinator can permit it",
    parameters=("operation", "table", "permission"),
    family="operation",
)
PUBLISHED_COMMIT_MISSING = ErrorCondition(
    "DELTA_PUBLISHED_COMMIT_MISSING",
    StorageError,
    "XXKDS",
    "{coordinator} says that version {version} of table {table} is published, but {path} is not there; restore it, "
    "or register the table again with the versions of its log",
    parameters=("table", "version", "path"),
    family="state",
)
PUBLISHED_COMMIT_DIFFERS = ErrorCondition(
    "DELTA_PUBLISHED_COMMIT_DIFFERS",
    StorageError,
    "XXKDS",
    "{path} of table {table} is not the commit that {coordinator} ratified as version {version}: somebody wrote it "
    "past the coordinator. Move it elsewhere; the next commit publishes the ratified one there",
    parameters=("table", "version", "path"),
    family="state",
)
COMMIT_PAST_COORDINATOR = ErrorCondition(
    "DELTA_COMMIT_PAST_COORDINATOR",
    StorageError,
    "XXKDS",
    "{path} of table {table} is not written: its commits are ratified by a coordinator",
    parameters=("table", "path"),
    family="state",
)
MANAGED_FEATURE_NEEDED = ErrorCondition(
    "DELTA_CATALOG_MANAGED_FEATURE_NEEDED",
    UnsupportedOperationError,
    "0AKDE",
    "table feature {feature} of {table} cannot be dropped, as a catalog manages the table; nothing was written",
    parameters=("feature", "table"),
    family="operation",
)
CATALOG_PROPERTY_NEEDED = MANAGED_FEATURE_NEEDED.also(
    "{property} of {table} stays {value!r}, because the catalog that manages the table requires it; nothing was "
    "written. Leave it out",
    parameters=("property", "value", "table"),
)
CATALOG_WANTS_FEATURES = CATALOG_MANAGED_MISMATCH.also(
    "table {table} cannot be made: its catalog requires features that cannot be written: {features:list}. Nothing "
    "was written; make it by another engine, or use a newer version of delta_ds",
    parameters=("table", "features"),
)
IN_COMMIT_TIMESTAMPS_NEEDED = MANAGED_FEATURE_NEEDED.also(
    "in-commit timestamps of {table} cannot be turned off ({property}), as a catalog manages the table; nothing was "
    "written",
    parameters=("table", "property"),
)
CATALOG_BEHIND_LOG = ErrorCondition(
    "DELTA_CATALOG_BEHIND_LOG",
    StorageError,
    "XXKDS",
    "cannot commit to table {table}: {path} is in its log, and {coordinator} knows no version after {before}: it has "
    "lost what it confirmed, or somebody wrote past it. Nothing was committed. Restore the catalog to where it knows "
    "version {version}; or give that commit up: move the file elsewhere",
    parameters=("table", "path", "version"),
    family="state",
)
UNMANAGED_TABLE_THERE = ErrorCondition(
    "DELTA_UNMANAGED_TABLE_AT_LOCATION",
    StorageError,
    "42P07",
    "a table already exists at {table}, and {coordinator} knows no version of it; nothing was written. A table is "
    "catalog-managed from its creation or never: copy its rows into a new one",
    parameters=("table", "coordinator"),
    family="state",
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
