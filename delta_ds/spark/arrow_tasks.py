"""Run Python tasks on Arrow batches, without pandas.

`DataFrame.mapInArrow` of a classic session makes its function by way of `pandas_udf`, which refuses to do anything
without pandas, and warns of versions that pyspark does not know. Nothing of it is used: the tasks see Arrow only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from delta_ds.spark.connect_bridge import is_connect
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What a function makes of the rows of each task; as `DataFrame.mapInArrow`.

    Parameters
    ----------
    frame
        The rows; each column has a name of its own.
    function
        Runs in the tasks: takes batches of them, yields batches of the result.
    schema
        Of the result, as DDL.
    """
    if is_connect(frame):
        # The client itself does not start without pandas.
        return frame.mapInArrow(function, schema)
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    task = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = task(*[frame[quoted(name)] for name in frame.columns])
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
