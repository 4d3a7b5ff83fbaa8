"""`register(spark)`: make a session ready for `pydelta`, and say what is active in it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from delta_ds.spark.pushdown import PUSHDOWN_CONF, plans_each_scan
from delta_ds.spark.source import FORMAT, DeltaSource, PushdownSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether something works in a session, and why or why not."""

    active: bool
    reason: str

    def __bool__(self) -> bool:
        return self.active

    def __str__(self) -> str:
        return f"{'on' if self.active else 'off'}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Registration:
    """What `register` found and did.

    Attributes
    ----------
    format
        The name for `spark.read.format(...)`.
    session
        `classic` or `connect`.
    spark_version
        Of the session, which for Spark Connect is the server's.
    source
        The data source itself.
    pushdown
        Files are skipped by the filters of a query.
    native_scan
        Files are read by Spark's own Parquet reader.
    """

    format: str
    session: str
    spark_version: str
    source: Capability
    pushdown: Capability
    native_scan: Capability

    def __str__(self) -> str:
        head = f"{self.format} on Spark {self.spark_version} ({self.session})"
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        lines = [f"  {name}: {value}" for name, value in values.items() if isinstance(value, Capability)]
        return "\n".join([head, *lines])


def register(spark: SparkSession, *, pushdown: bool | None = None) -> Registration:
    """Register the data source in a session; doing so again is harmless.

    Sessions that find the package on the Python path know the source without this.

    Parameters
    ----------
    spark
        A classic session or one of Spark Connect.
    pushdown
        Skip files by the filters of a query. None: where Spark does it safely. True: in any Spark; up to
        4.3 this loses rows as soon as one DataFrame or view is scanned twice with different filters, so
        only for sessions that never do so. False: never.

    Returns
    -------
    Registration
        What is active, and why other things are not.

    >>> print(delta_ds.register(spark))  # doctest: +SKIP
    pydelta on Spark 4.3.0 (classic)
      source: on: spark.read.format('pydelta')
      ...
    """
    chosen = _pushdown(pushdown)
    spark.dataSource.register(PushdownSource if chosen and pushdown else DeltaSource)
    if chosen:
        spark.conf.set(PUSHDOWN_CONF, "true")
    return Registration(
        format=FORMAT,
        session="connect" if type(spark).__module__.startswith("pyspark.sql.connect") else "classic",
        spark_version=spark.version,
        source=Capability(True, f"spark.read.format({FORMAT!r})"),
        pushdown=chosen,
        native_scan=Capability(False, "not available in this version of delta_ds"),
    )


def _pushdown(wanted: bool | None) -> Capability:
    if wanted is False:
        return Capability(False, "as asked for")
    if plans_each_scan():
        return Capability(True, "files are skipped by the filters of a query")
    if wanted:
        return Capability(True, "as asked for; every DataFrame must be scanned with one filter only")
    return Capability(
        False,
        "this Spark applies the filters of one scan of a DataFrame to its other scans too, which loses rows; "
        "register(spark, pushdown=True) if no DataFrame or view is scanned twice",
    )
