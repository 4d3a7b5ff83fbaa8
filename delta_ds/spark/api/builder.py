"""`DeltaTableBuilder`: create and replace tables, with the methods of `delta.tables.DeltaTableBuilder`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructField as SparkStructField
from pyspark.sql.types import StructType as SparkStructType

from delta_ds.conditions.columns import COLUMN_TWICE_IN_NEW_TABLE
from delta_ds.conditions.record import CREATE_BY_NAME_NOT_ALLOWED, OPTIONS_OF_NAMED_TABLE
from delta_ds.conditions.session import (
    CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION,
    TABLE_NAME_ALREADY_EXISTS,
)
from delta_ds.kernel.format.operations import CREATE_OR_REPLACE_TABLE, CREATE_TABLE, REPLACE_TABLE
from delta_ds.kernel.format.options.settings import default_properties
from delta_ds.kernel.format.schema.evolution import check_duplicates
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.transaction.alter import create
from delta_ds.records import dataclass, replace
from delta_ds.spark.base.kinds import session_facts
from delta_ds.spark.base.kinds.session_kind import knows_names, server_knows_names
from delta_ds.spark.base.schema import spark_type, to_kernel
from delta_ds.spark.base.table_names import DELTA, FORMAT, format_and_path
from delta_ds.spark.commands.handle import Handle, open_handle, open_name
from delta_ds.spark.engines.arguments import NotExecuted, missing_attribute, public_methods
from delta_ds.spark.engines.connect.connect_bridge import open_log, run
from delta_ds.spark.session.writing import as_existing_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Table = TypeVar("_Table")
_LONGS = range(-(1 << 63), 1 << 63)
_STATEMENTS = {
    create.CREATE: CREATE_TABLE.name,
    create.IF_NOT_EXISTS: f"{CREATE_TABLE} IF NOT EXISTS",
    create.REPLACE: REPLACE_TABLE.name,
    create.CREATE_OR_REPLACE: CREATE_OR_REPLACE_TABLE.name,
}


@dataclass(frozen=True)
class IdentityGenerator:
    """Numbers for an identity column: `start`, `start + step`, ...; gaps are possible.

    Attributes
    ----------
    start
        The first number.
    step
        From one number to the next; may be negative, not 0.

    Examples
    --------
    >>> IdentityGenerator(start=10, step=5)
    IdentityGenerator(start=10, step=5)
    """

    start: int = 1
    step: int = 1


@public_methods
class DeltaTableBuilder(Generic[_Table]):
    """Builds a new table; `execute` creates it.

    Begin with `DeltaTable.create`, `createIfNotExists`, `replace` or `createOrReplace`. Every method but `execute`
    returns the builder.

    Examples
    --------
    >>> builder = DeltaTable.create(spark).location("/data/visits").comment("visits of pages")
    >>> builder = builder.addColumn("day", "date").addColumn("page", "string", nullable=False)
    >>> builder.partitionedBy("day").property("delta.appendOnly", "true").execute()
    DeltaTable('/data/visits')
    """

    def __init__(self, spark: SparkSession, mode: str, table_of: Callable[[Handle], _Table]) -> None:
        self._spark = spark
        self._mode = mode
        self._table_of = table_of
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._fields: list[StructField] = []
        self._partitioning: tuple[str, ...] = ()
        self._clustering: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}
        self._options: dict[str, str] = {}
        self._unfinished = NotExecuted("the table that a builder describes")

    def tableName(self, identifier: str) -> DeltaTableBuilder[_Table]:
        """The name of the table in the catalog, or ``delta.`/path` ``.

        Parameters
        ----------
        identifier
            As in Spark SQL: `table`, `schema.table`, or a path as above. A name without `location` creates a
            managed table, whose files are in the warehouse.

        Raises
        ------
        UnsupportedOperationError
            The session's catalog does not know tables of this package.

        Examples
        --------
        >>> made = DeltaTable.create(spark).tableName("doc_visits").addColumn("day", "date").execute()
        >>> spark.table("doc_visits").columns
        ['day']
        >>> spark.sql("DROP TABLE doc_visits").collect()
        []
        """
        source, path = format_and_path(_text("Table name", identifier))
        if source in (FORMAT, DELTA):
            self._location = path
        elif not knows_names(self._spark) and not server_knows_names(self._spark):
            raise CREATE_BY_NAME_NOT_ALLOWED(identifier=identifier)
        else:
            self._name = identifier
        return self

    def location(self, location: str) -> DeltaTableBuilder[_Table]:
        """The path or URL of the table.

        Parameters
        ----------
        location
            A local path or URL; with a name too, the table is external: DROP TABLE leaves its files.

        Examples
        --------
        >>> DeltaTable.create(spark).location("/data/visits").addColumn("day", "date").execute()
        DeltaTable('/data/visits')
        """
        self._location = _text("Location", location)
        return self

    def option(self, key: str, value: str) -> DeltaTableBuilder[_Table]:
        """A setting of the filesystem: Hadoop's `fs.*`, or `storage.*`. Not in delta-spark.

        Parameters
        ----------
        key, value
            As in `df.write.option`; see `docs/storage.md`. The table does not store it.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("s3://bucket/visits").addColumn("day", "date")
        >>> builder = builder.option("fs.s3a.endpoint", "http://localhost:9000")
        """
        self._options[_text("Option", key)] = value
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[_Table]:
        """The description of the table.

        Parameters
        ----------
        comment
            Any text; `detail` shows it as `description`.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/visits").addColumn("day", "date")
        >>> builder.comment("visits of pages").execute().detail().first().description
        'visits of pages'
        """
        self._comment = _text("Table comment", comment)
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | SparkDataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
        default: str | None = None,
    ) -> DeltaTableBuilder[_Table]:
        """Add a column.

        Parameters
        ----------
        colName
            The plain name, without backticks.
        dataType
            A Spark type, or its DDL text.
        nullable
            Whether the value may be null.
        generatedAlwaysAs
            SQL text that computes the column from others, or an `IdentityGenerator`.
        generatedByDefaultAs
            An `IdentityGenerator` for rows without a value.
        comment
            A comment on the column.
        default
            SQL text of a constant for rows that lack the column. Not in delta-spark's builder. The table needs
            the property `delta.feature.allowColumnDefaults` = `supported`.

        Raises
        ------
        TypeError, ValueError
            An argument of the wrong type; generated in two ways; a step of 0.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/visits").addColumn("at", "timestamp")
        >>> builder = builder.addColumn("day", "date", generatedAlwaysAs="cast(at AS date)", comment="of the visit")
        >>> builder.execute().toDF().dtypes
        [('at', 'timestamp'), ('day', 'date')]
        """
        name = _text("Column name", colName)
        if not isinstance(nullable, bool):
            raise TypeError(f"Column nullable must be bool, not {nullable!r}")
        metadata: dict[str, Any] = {}
        if comment is not None:
            metadata["comment"] = _text("Column comment", comment)
        metadata |= _generation(generatedAlwaysAs, generatedByDefaultAs)
        if default is not None:
            metadata[CURRENT_DEFAULT] = _text("Column default", default)
        (field,) = to_kernel([SparkStructField(name, spark_type(dataType), nullable)])
        self._fields.append(replace(field, metadata={**metadata, **field.metadata}))
        return self

    def addColumns(self, cols: SparkStructType | Sequence[SparkStructField]) -> DeltaTableBuilder[_Table]:
        """Add the columns of a schema.

        Parameters
        ----------
        cols
            A `StructType`, such as the schema of a DataFrame, or a list of fields.

        Examples
        --------
        >>> orders = spark.read.format("pydelta").load("/data/orders")
        >>> empty = DeltaTable.create(spark).location("/data/empty").addColumns(orders.schema).execute()
        >>> empty.toDF().columns
        ['id', 'country', 'amount']
        """
        fields = cols.fields if isinstance(cols, SparkStructType) else cols
        if not isinstance(fields, (list, tuple)) or not all(isinstance(f, SparkStructField) for f in fields):
            raise TypeError(f"Schema must be StructType or a list of StructField, not {cols!r}")
        self._fields.extend(to_kernel(fields))
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder[_Table]:
        """The columns that split the table into folders.

        Parameters
        ----------
        cols
            Names of columns of the table, one by one or as one list.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/visits").addColumn("page", "string")
        >>> table = builder.addColumn("day", "date").partitionedBy("day").execute()
        >>> table.detail().first().partitionColumns
        ['day']
        """
        self._partitioning = _names("Partitioning", cols)
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder[_Table]:
        """The columns by which OPTIMIZE arranges rows (liquid clustering).

        Parameters
        ----------
        cols
            Names of columns, fields of structs as `s.a`, one by one or as one list; at most 4. Not with partitions.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/visits").addColumn("page", "string")
        >>> builder.clusterBy("page").execute().detail().first().clusteringColumns
        ['page']
        """
        self._clustering = _names("Clustering", cols)
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder[_Table]:
        """A table property.

        Parameters
        ----------
        key, value
            As `DeltaTable.setProperties` takes them.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/visits").addColumn("page", "string")
        >>> builder.property("delta.appendOnly", "true").execute().detail().first().properties
        {'delta.appendOnly': 'true'}
        """
        self._properties[_text("Key of property", key)] = _text("Value of property", value)
        return self

    def execute(self) -> _Table:
        """Create the table.

        Returns
        -------
        DeltaTable
            The new table, or the existing one (`createIfNotExists`).

        Raises
        ------
        TableExistsError
            The table already exists (`create`).
        NotADeltaTableError
            There is no table to replace (`replace`).
        DeltaError
            The definition is not possible; the message names the column or property.

        Examples
        --------
        >>> builder = DeltaTable.createIfNotExists(spark).location("/data/visits").addColumn("page", "string")
        >>> builder.execute().history().first().operation
        'CREATE TABLE'
        """
        self._unfinished.done()
        check_duplicates(
            StructType(tuple(self._fields)),
            COLUMN_TWICE_IN_NEW_TABLE,
            self._name or self._location or "the table",
        )
        if self._name is not None:
            return self._create_named(self._name)
        if self._location is None:
            raise CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION()
        with as_existing_name(self._location) if self._mode == create.CREATE else nullcontext():
            run(
                open_log(self._spark, self._location, self._options),
                create.create_table,
                StructType(tuple(self._fields)),
                self._partitioning,
                self._properties,
                mode=self._mode,
                description=self._comment,
                cluster_by=self._clustering,
                defaults=default_properties(session_facts.session_settings(self._spark)),
                rules=session_facts.property_rules(self._spark),
            )
        return self._table_of(open_handle(self._spark, self._location, self._options))

    def __repr__(self) -> str:
        place = self._name or self._location or "no place yet"
        columns = ", ".join(field.name for field in self._fields)
        return f"<table to be made: {place} ({columns}): nothing happens before execute()>"

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name):
            if not name.startswith("_"):
                self._unfinished.done()  # this error says enough
            raise missing_attribute(
                self, name, "first call execute(), which makes the table; its rows are toDF()"
            )

    def _create_on_server(self, name: str) -> None:
        """A server that knows names makes the table, by a statement."""
        from delta_ds.spark.base.create_text import create_text

        if self._options:
            raise OPTIONS_OF_NAMED_TABLE(options=sorted(self._options), table=name)
        statement = create_text(
            _STATEMENTS[self._mode],
            name,
            StructType(tuple(self._fields)),
            partitioning=self._partitioning,
            clustering=self._clustering,
            location=self._location,
            comment=self._comment,
            properties=self._properties,
        )
        self._spark.sql(statement).collect()

    def _create_named(self, name: str) -> _Table:
        if server_knows_names(self._spark):
            self._create_on_server(name)
            return self._table_of(open_name(self._spark, name))
        from delta_ds.spark.session.catalog.places import CREATE, create_empty, place_of
        from delta_ds.spark.session.writes.write import NewTable

        mode = CREATE if self._mode == create.IF_NOT_EXISTS else self._mode
        place = place_of(self._spark, name, self._location, mode)
        known = place.entry is not None or place.is_there
        if known and self._mode == create.CREATE:
            raise TABLE_NAME_ALREADY_EXISTS(relationName=place.shown)
        if not known or self._mode != create.IF_NOT_EXISTS:
            table = NewTable(
                mode=mode,
                schema=StructType(tuple(self._fields)),
                partitioning=self._partitioning,
                clustering=self._clustering or None,
                properties=self._properties,
                options=self._options,
                comment=self._comment,
            )
            create_empty(self._spark, place, table)
            place.register(self._spark, self._comment)
        return self._table_of(open_name(self._spark, name))


def _generation(
    always: str | IdentityGenerator | None, by_default: IdentityGenerator | None
) -> dict[str, Any]:
    if always is not None and by_default is not None:
        raise ValueError("generatedByDefaultAs and generatedAlwaysAs cannot both be set.")
    if isinstance(always, str):
        return {GENERATION_EXPRESSION: always}
    generator = always if always is not None else by_default
    if generator is None:
        return {}
    if not isinstance(generator, IdentityGenerator):
        raise TypeError(f"a column is generated by SQL text or an IdentityGenerator, not {generator!r}")
    if generator.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    if generator.start not in _LONGS or generator.step not in _LONGS:
        raise ValueError(
            f"start and step of an identity column are whole numbers of 64 bits, not {generator}"
        )
    return {
        IDENTITY_START: generator.start,
        IDENTITY_STEP: generator.step,
        IDENTITY_ALLOW_EXPLICIT_INSERT: by_default is not None,
    }


def _names(what: str, cols: Sequence[str | Sequence[str]]) -> tuple[str, ...]:
    flat = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    return tuple(_text(f"{what} column", name) for name in flat)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {value!r} of type {type(value).__name__}")
    return value
