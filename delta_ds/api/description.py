"""`Described`: the commands of a `DeltaLog` that change what a table says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.transaction.table_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.schema.types import StructType


class TableDetail(TypedDict):
    """What `Snapshot.detail` says of a table, under the keys of `DESCRIBE DETAIL`; bytes, and ms since 1970."""

    format: str
    id: str
    name: str | None
    description: str | None
    location: str
    createdAt: int | None
    lastModified: int
    partitionColumns: list[str]
    clusteringColumns: list[str]
    numFiles: int
    sizeInBytes: int
    properties: dict[str, str]
    minReaderVersion: int
    minWriterVersion: int
    tableFeatures: list[str]


@checked
class Described(TableLog):
    """Each command is one transaction; it reads no rows, but for a new constraint."""

    def add_columns(
        self, columns: pa.Schema | StructType, *, first: bool = False, after: str | None = None
    ) -> int:
        """Add columns; rows that are there have null in them.

        Parameters
        ----------
        columns
            Names and types.
        first, after
            Where they go: before all others, or behind a column; by default at the end.

        Returns
        -------
        int
            The version committed.

        Raises
        ------
        SchemaError
            A column of the name is there, or a name or type is not possible.
        UnsupportedOperationError
            A column that takes no null.
        UnsupportedFeatureError
            A type whose feature has to be added first: `add_feature`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/orders")
        >>> log.add_columns(pa.schema({"note": pa.string()}), after="id")
        2
        >>> log.snapshot().schema.names
        ['id', 'note', 'country', 'amount']
        """
        from delta_ds.kernel.format.schema.from_arrow import delta_schema
        from delta_ds.kernel.transaction.alter.columns import NewColumn, place_columns

        fields = list(delta_schema(columns))
        if first or after is not None:
            fields.reverse()  # each goes before those that were placed so far
        return place_columns(self, [NewColumn(field, None, first, after) for field in fields])

    def set_properties(self, properties: Mapping[str, Any], *, unknown: bool = False) -> int:
        """Set table properties, and upgrade the protocol as far as they need it.

        Parameters
        ----------
        properties
            Names to values; `delta.` names in any case. `comment` sets the description.
        unknown
            Whether `delta.` names may be some that there are not.

        Returns
        -------
        int
            The version committed.

        Raises
        ------
        InvalidOptionError
            An unknown name, a wrong value, what cannot be set this way, or values that contradict each other.
        UnsupportedFeatureError
            What is asked for needs a feature that this package could not write.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.set_properties({"delta.appendOnly": True, "team": "sales"})
        2
        >>> log.snapshot().properties["team"]
        'sales'
        """
        from delta_ds.kernel.format.properties import PropertyRules
        from delta_ds.kernel.transaction.alter.properties import set_properties

        return set_properties(self, properties, PropertyRules(unknown=unknown))

    def unset_properties(self, names: Sequence[str]) -> int:
        """Take table properties away; those that are not set are ignored.

        Parameters
        ----------
        names
            `delta.` names in any case, others as they are stored.

        Raises
        ------
        InvalidOptionError
            One that cannot be taken away.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.set_properties({"team": "sales"}), log.unset_properties(["team"])
        (2, 3)
        """
        from delta_ds.kernel.transaction.alter.properties import unset_properties

        return unset_properties(self, names)

    def add_constraint(self, name: str, expression: str) -> int:
        """Add a CHECK constraint: rows for which it is not true can no longer be written.

        Parameters
        ----------
        name
            How it is called, in any case.
        expression
            Spark SQL over the columns of the table.

        Returns
        -------
        int
            The version committed.

        Raises
        ------
        InvariantViolationError
            A row that is there violates it.
        SchemaError
            There is a constraint of that name.
        PredicateError, UnsupportedFeatureError
            The expression does not fit the table, or only Spark can evaluate it.

        Examples
        --------
        >>> DeltaLog("/data/orders").add_constraint("has_price", "amount > 0")
        2
        """
        from delta_ds.conditions.columns import NEW_CHECK_CONSTRAINT_VIOLATION
        from delta_ds.kernel.files.scan.scan import Scan
        from delta_ds.kernel.transaction.alter.definitions import add_constraint

        def verify(text: str) -> None:
            broken = Scan(self.open_snapshot(), f"NOT coalesce(({text}), false)", [])
            if any(batch.num_rows for batch in broken.to_batches()):
                raise NEW_CHECK_CONSTRAINT_VIOLATION(
                    table=self.storage.url, constraint=name, expression=expression
                )

        return add_constraint(self, name, expression, verify)

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> int:
        """Drop a CHECK constraint.

        Parameters
        ----------
        name
            Of the constraint, in any case.
        if_exists
            Whether it may be missing.

        Returns
        -------
        int
            The version committed, also where there was nothing to drop: the history says so, as delta-spark's does.

        Raises
        ------
        InvalidOptionError
            There is none; the message names the existing ones.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.add_constraint("has_price", "amount > 0"), log.drop_constraint("has_price")
        (2, 3)
        """
        from delta_ds.kernel.transaction.alter.definitions import drop_constraint

        return drop_constraint(self, name, if_exists=if_exists)

    def add_feature(self, name: str) -> int:
        """Make the table support a feature, and what it depends on; the protocol rises as far as that needs.

        Parameters
        ----------
        name
            The feature's name in any case, such as `deletionVectors`.

        Returns
        -------
        int
            The version committed.

        Raises
        ------
        UnsupportedFeatureError
            There is no such feature, or this package cannot write it.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.add_feature("deletionVectors"), "deletionVectors" in log.snapshot().protocol.supported
        (2, True)
        """
        from delta_ds.kernel.transaction.alter.properties import add_feature_support

        return add_feature_support(self, name)
