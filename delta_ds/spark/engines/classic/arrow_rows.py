"""The rows of a query as Arrow data of this process: computed once, measured, and brought here if they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.base.arrow_buffers import with_long_offsets
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
        sent = pa.schema([field.with_type(with_long_offsets(field.type)) for field in schema])
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
