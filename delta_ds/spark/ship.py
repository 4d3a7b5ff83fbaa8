"""`ship(spark)`: give this package to the executors of a session that is running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds._version import __version__
from delta_ds.spark.base.kinds.sealed import is_registered, register_source
from delta_ds.spark.base.table_names import FORMAT
from delta_ds.spark.engines.arguments import public
from delta_ds.spark.engines.portable.source import DeltaSource
from delta_ds.spark.engines.seam.shipping import send_package
from delta_ds.spark.register import Capability

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@public
def ship(spark: SparkSession) -> Capability:
    """Give this package to the Python workers of a session that is running; doing so again is harmless.

    For executors whose Python has what the package needs (pyarrow, numpy, fsspec, sqlglot, pyroaring) but not the
    package, or another version of it: the version of this program goes before what is installed there. Executors that
    come later get it too. As Spark's `addPyFile` does it, it stays for the life of the application.

    Parameters
    ----------
    spark
        A classic session, or one of Spark Connect: there the package is an artifact of the session, and workers of the
        server are not asked what they lack.

    Returns
    -------
    Capability
        On: executors can run the package. Off: what they lack besides it, and what to do; they were asked.

    Raises
    ------
    UnsupportedOperationError
        The package of this program consists of other files than a folder or an archive of Python modules.

    Examples
    --------
    >>> import delta_ds
    >>> answer = delta_ds.ship(spark)  # doctest: +SKIP
    >>> answer.active, answer.reason  # doctest: +SKIP
    (True, 'executors have delta-ds 0.1.0')
    """
    if not is_registered(spark, FORMAT):
        register_source(spark, DeltaSource)
    owners, problem = send_package(spark)
    return Capability(problem is None, problem or f"{owners} have delta-ds {__version__}")
