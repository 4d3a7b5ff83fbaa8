"""Calls of a client that a server of ours answers in the Python that its sessions are registered in.

A server whose Python has this package is called through a data source, whose processes know no session and are started
for each call (`connect_bridge.py`). Where `register` runs in the server's own process, a relation of our own brings a
call there: Spark sees in it a command, runs it once, and gives the client its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.spark.base import wire
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# See `ClientCalls.java`.
_TYPE = "type.googleapis.com/delta_ds.Call"


def call(
    spark: SparkSession, what: Sequence[Any], columns: Sequence[Column] = (), rows: DataFrame | None = None
) -> Any:
    """What the server answers.

    Parameters
    ----------
    spark
        A session of Spark Connect, of a server of ours.
    what
        The kind of the call and its arguments, as `sql/client_calls.py` takes them; `wire.py` has a form for them.
    columns
        Expressions that `what` speaks of, by their numbers. Queries in them do not travel.
    rows
        Of a MERGE.

    Raises
    ------
    DeltaError
        What the server raised.
    """
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LogicalPlan

    class Call(LogicalPlan):
        def plan(self, session: Any) -> Any:
            content = proto.Project()
            content.expressions.add().literal.string = wire.encode(tuple(what))
            for column in columns:
                content.expressions.add().CopyFrom(column.to_plan(session))  # type: ignore[operator]
            if rows is not None:
                content.input.CopyFrom(rows._plan.plan(session))  # type: ignore[operator]
            relation = self._create_proto_relation()
            # As bytes, which Spark abbreviates where it shows plans.
            relation.extension.type_url = _TYPE
            relation.extension.value = content.SerializeToString()
            return relation

    with delta_errors():
        ((answer,),) = ConnectFrame(Call(None), spark).collect()  # type: ignore[arg-type]
    return wire.decode(answer)
