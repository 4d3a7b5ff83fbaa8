"""The rows of a query as Arrow data of this process: computed once, measured, and brought here if they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.engines.classic.jvm import Jvm, compile_class

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_LARGE_CONF = "spark.sql.execution.arrow.useLargeVarTypes"


def arrow_rows(frame: DataFrame, most: int) -> pa.Table | None:
    """The rows of a frame, which one Spark job computes; a second one brings them.

    `toArrow` brings rows while they are computed, however many they become.

    Parameters
    ----------
    frame
        Of a classic session.
    most
        How many bytes of Arrow data they may be.

    Returns
    -------
    pyarrow.Table or None
        In the order of the frame, instants in UTC. None where they are more than `most`, or more than the executors
        hold in memory.
    """
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    schema = frame.limit(0).toArrow().schema  # messages do not tell it
    sent = schema
    if frame.sparkSession.conf.get(_LARGE_CONF, "false") == "true":
        sent = pa.schema([field.with_type(_large(field.type)) for field in schema])
    jvm = Jvm.of(frame.sparkSession)
    rows = compile_class(jvm.jvm, jvm.gateway, "ArrowRows")
    kept = rows.computed(frame._jdf)
    try:
        size = int(rows.bytes(kept))
        if not 0 <= size <= most:
            return None
        messages: list[bytes] = RDD(kept, frame.sparkSession.sparkContext, NoOpSerializer()).collect()
    finally:
        kept.unpersist(False)
    batches = [pa.ipc.read_record_batch(pa.py_buffer(message), sent) for message in messages]
    return pa.Table.from_batches(batches, sent).cast(schema)


def _large(kind: pa.DataType) -> pa.DataType:
    """A type as the JVM sends it where all texts and bytes have long offsets: also those of a variant."""
    import pyarrow as pa

    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_large(field.type)) for field in kind])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(_large(kind.key_type), item.with_type(_large(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_large(kind.value_type)))
    return kind
