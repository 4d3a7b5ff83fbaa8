"""`DeltaApplyChangesBuilder`: a slowly changing dimension in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import APPLY_CHANGES_OF_BATCH, APPLY_CHANGES_OF_STREAM
from delta_ds.records import dataclass, field, replace
from delta_ds.spark.commands.apply_changes.run import apply_events, batch_function, specified
from delta_ds.spark.commands.apply_changes.spec import Asked
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.engines.arguments import NotExecuted, missing_attribute, public_methods

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@public_methods
@dataclass(frozen=True)
class DeltaApplyChangesBuilder:
    """Events of rows on their way into a table, as a slowly changing dimension. Made by `DeltaTable.applyChanges`.

    An event is a row of the source: of its key, at its place in a sequence, it says the values, or that the row is
    gone. Events may come in any order within a batch. Of a delete and another event at one place the other counts; two
    different rows there are refused, as are nulls in keys and sequences. Of what is in the table already an event of
    the same key and place changes nothing, so a batch that comes again does no harm. A table takes the batches of one
    application at a time. Every method but `execute` and `writeStream` answers a new builder.

    Examples
    --------
    >>> from delta_ds import DeltaTable
    >>> city = DeltaTable.create(spark).location("/data/city").addColumn("id", "bigint").addColumn("city", "string")
    >>> city = city.addColumn("valid_from", "bigint").addColumn("valid_to", "bigint").execute()
    >>> events = spark.createDataFrame([(1, "Aachen", 1), (1, "Berlin", 5)], "id bigint, city string, ts bigint")
    >>> done = city.applyChanges(events).keys("id").sequenceBy("ts").scd2("valid_from", "valid_to").execute()
    >>> city.toDF().orderBy("valid_from").show()
    +---+------+----------+--------+
    | id|  city|valid_from|valid_to|
    +---+------+----------+--------+
    |  1|Aachen|         1|       5|
    |  1|Berlin|         5|    NULL|
    +---+------+----------+--------+
    """

    _handle: Handle
    _source: DataFrame
    _asked: Asked = field(default_factory=Asked, compare=False)
    _unfinished: NotExecuted = field(default_factory=lambda: NotExecuted("applyChanges"), compare=False)

    def keys(self, *columns: str) -> DeltaApplyChangesBuilder:
        """The columns that tell rows apart, in source and table.

        Parameters
        ----------
        columns
            Their names. Values that are compared; null is refused.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.applyChanges(table.toDF()).keys("id", "country")
        <events into /data/orders by id, country: nothing happens before execute() or writeStream()>
        """
        return self._with(keys=columns)

    def sequenceBy(self, expression: str | Column) -> DeltaApplyChangesBuilder:
        """What puts the events of a key in order.

        Parameters
        ----------
        expression
            Over the source: SQL text, or a Column by name (`F.col("ts")`). Null is refused. Of the rows of a change
            feed it is `_commit_version` by default; `_commit_timestamp` will do too, and nothing else.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> builder = table.applyChanges(table.toDF()).keys("id").sequenceBy("amount")
        """
        return self._with(sequence=expression)

    def applyAsDeletes(self, condition: str | Column) -> DeltaApplyChangesBuilder:
        """Which events say that a row is gone.

        Parameters
        ----------
        condition
            Over the source: SQL text, or a Column by name; null counts as false. Those of a change
            feed are known by themselves; this adds to them, as where a column says that a row is gone.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> builder = table.applyChanges(table.toDF()).keys("id").applyAsDeletes("country = 'PL'")
        """
        return self._with(deletes=condition)

    def exceptColumns(self, *columns: str) -> DeltaApplyChangesBuilder:
        """Columns of the source that do not go into the table, as one that holds the kind of event.

        Those that describe the change of a change feed never do, nor does what `sequenceBy` names where the table has
        no such column.

        Parameters
        ----------
        columns
            Their names.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> builder = table.applyChanges(table.toDF()).keys("id").exceptColumns("country")
        """
        return self._with(excluded=columns)

    def trackHistory(self, *columns: str) -> DeltaApplyChangesBuilder:
        """Columns whose change opens a version of type 2; changes of others go into the version that holds.

        By default all. `scd2` needs `sequence` then: an older event must not overwrite what is newer.

        Parameters
        ----------
        columns
            Their names in the table.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> builder = table.applyChanges(table.toDF()).keys("id").trackHistory("country")
        """
        return self._with(tracked=columns, untracked=None)

    def trackHistoryExcept(self, *columns: str) -> DeltaApplyChangesBuilder:
        """The other way round: columns whose change opens no version; see `trackHistory`.

        Parameters
        ----------
        columns
            Their names in the table.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> builder = table.applyChanges(table.toDF()).keys("id").trackHistoryExcept("amount")
        """
        return self._with(untracked=columns, tracked=None)

    def lateEvents(self, column: str) -> DeltaApplyChangesBuilder:
        """Take events in any order over any batches, and keep what that needs.

        Without it a later batch may bring older events as well: they overwrite nothing that is newer, and cut versions
        of type 2 in two. But of what is gone or did not change the table remembers nothing, so that an older event may
        bring a deleted row back, and batches have to come in order where there are deletes, as those of a change feed
        do. With it such events stay as rows, marked in a column of the table: `delete`, without values, and of type 2
        `unchanged`, both valid at no time. Readers take rows where it is null. It has to be used from the first batch.

        Parameters
        ----------
        column
            Of the table, string.

        Examples
        --------
        >>> city = DeltaTable.create(spark).location("/data/city").addColumn("id", "bigint").addColumn("city", "string")
        >>> city = city.addColumn("_sequence", "bigint").addColumn("_late", "string").execute()
        >>> def apply(row):
        ...     events = spark.createDataFrame([row], "id bigint, city string, ts bigint")
        ...     builder = city.applyChanges(events).keys("id").sequenceBy("ts").applyAsDeletes("city IS NULL")
        ...     return builder.lateEvents("_late").scd1().execute()
        >>> done = apply((1, None, 5)), apply((1, "Aachen", 3))
        >>> city.toDF().collect()
        [Row(id=1, city=None, _sequence=5, _late='delete')]
        """
        return self._with(late=column)

    def scd1(self, sequence: str | None = None) -> DeltaApplyChangesBuilder:
        """Type 1: the table holds the last state of each row.

        Parameters
        ----------
        sequence
            The column of the table that keeps the sequence of each row, of the type of the sequence: an older event
            that comes later finds that it is older. By default the column that `sequenceBy` names, if the table has
            it, else `_sequence`. A row with null in it is older than any event.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.setProperties({"delta.enableChangeDataFeed": "true"})
        >>> copy = DeltaTable.create(spark).location("/data/copy").addColumns(table.toDF().schema)
        >>> copy = copy.addColumn("_sequence", "bigint").execute()
        >>> updated, deleted = table.update("id = 1", {"amount": "11.0"}), table.delete("id = 2")
        >>> changes = table.changes(3)
        >>> copy.applyChanges(changes).keys("id").scd1().execute().first()
        Row(num_affected_rows=1, num_updated_rows=0, num_deleted_rows=0, num_inserted_rows=1)
        """
        return self._with(stored=1, kept_sequence=sequence)

    def scd2(
        self,
        validFrom: str = "valid_from",
        validTo: str = "valid_to",
        current: str | None = None,
        sequence: str | None = None,
    ) -> DeltaApplyChangesBuilder:
        """Type 2: the table holds each state of each row, with the part of the sequence in which it was so.

        Parameters
        ----------
        validFrom, validTo
            Columns of the table, of the type of the sequence: a state holds from the one, and up to, but not at, the
            other, which is null of the state that holds. A delete closes a state and opens none.
        current
            A boolean column of the table, true where `validTo` is null.
        sequence
            With `trackHistory`: the column that keeps the place of the values that are not tracked.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> builder = table.applyChanges(table.toDF()).keys("id").sequenceBy("amount").scd2("valid_from", "valid_to")
        """
        return self._with(
            stored=2, valid_from=validFrom, valid_to=validTo, current=current, kept_sequence=sequence
        )

    def execute(self) -> DataFrame:
        """Apply a batch, in one MERGE and so one commit.

        Returns
        -------
        DataFrame
            One row, as that of a MERGE: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows`,
            `num_inserted_rows`.

        Raises
        ------
        InvalidOptionError, SchemaError
            Something is missing, a column is not there, or of another type.
        UnsupportedOperationError
            The source is a stream.
        InvariantViolationError
            A key or a sequence is null, or two different rows are at one place. Nothing was written.
        DeltaConcurrentModificationException
            Another commit contradicts it. Nothing was written.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.addColumns(spark.createDataFrame([], "ts bigint").schema)
        >>> events = spark.createDataFrame([(1, "DE", 12.0, 5)], "id bigint, country string, amount double, ts bigint")
        >>> table.applyChanges(events).keys("id").sequenceBy("ts").scd1().execute().first().num_updated_rows
        1
        """
        self._unfinished.done()
        if self._source.isStreaming:
            raise APPLY_CHANGES_OF_STREAM(table=self._handle.where)
        return apply_events(self._handle, self._asked, self._source)

    def writeStream(self) -> DataStreamWriter:
        """Apply each batch of a stream, once however often it is tried: each is one commit at most.

        In classic sessions the query's id and the batch's number are recorded in the commit, as by a stream into a
        table; and a batch that is there already changes nothing anyway.

        Returns
        -------
        DataStreamWriter
            Spark's own: give it a `checkpointLocation` and a trigger, and `start()` it.

        Raises
        ------
        UnsupportedOperationError
            The source is no stream.
        InvalidOptionError, SchemaError
            As of `execute`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> copy = DeltaTable.create(spark).location("/data/copy").addColumns(table.toDF().schema)
        >>> copy = copy.addColumn("_sequence", "bigint").execute()
        >>> table.setProperties({"delta.enableChangeDataFeed": "true"})
        >>> feed = spark.readStream.format("pydelta").option("readChangeFeed", "true").load("/data/orders")
        >>> stream = copy.applyChanges(feed).keys("id").scd1().writeStream()
        >>> query = stream.option("checkpointLocation", "/data/checkpoint").trigger(availableNow=True).start()
        >>> finished = query.awaitTermination()
        >>> copy.toDF().count()
        4
        """
        self._unfinished.done()
        if not self._source.isStreaming:
            raise APPLY_CHANGES_OF_BATCH(table=self._handle.where)
        specified(self._handle, self._asked, self._source)
        return self._source.writeStream.foreachBatch(batch_function(self._handle, self._asked))

    def __repr__(self) -> str:
        keys = ", ".join(self._asked.keys)
        return (
            f"<events into {self._handle.where} by {keys}: nothing happens before execute() or writeStream()>"
        )

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name):
            if not name.startswith("_"):
                self._unfinished.done()  # this error says enough
            raise missing_attribute(self, name, "first call execute(), whose answer is a DataFrame")

    def _with(self, **asked: Any) -> DeltaApplyChangesBuilder:
        return replace(self, _asked=replace(self._asked, **asked))
