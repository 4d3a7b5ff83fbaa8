"""`delta.pip_utils`: what programs call to get delta-spark's jar, which nobody needs here."""

from __future__ import annotations

from pyspark.sql import SparkSession

from delta_ds.events.spark import NO_JAR_FETCHED
from delta_ds.spark.as_delta.auto_register import install_auto_register
from delta_ds.spark.as_delta.settings import PACKAGES, remaining_packages
from delta_ds.spark.engines.arguments import public

__all__ = ["configure_spark_with_delta_pip"]


@public
def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: list[str] | None = None
) -> SparkSession.Builder:
    """Have the session that a builder makes registered; no jar is fetched.

    Parameters
    ----------
    spark_session_builder
        Of a classic session or one of Spark Connect, as `SparkSession.builder` gives it.
    extra_packages
        Maven coordinates of other jars, which the session gets. Those of delta-spark are passed over.

    Returns
    -------
    SparkSession.Builder
        The same.

    Raises
    ------
    InvalidArgumentError
        A `TypeError`: that is no builder.
    """
    install_auto_register()
    packages = remaining_packages(extra_packages or [])
    NO_JAR_FETCHED.log(extra_packages=",".join(packages))
    return spark_session_builder.config(PACKAGES, ",".join(packages)) if packages else spark_session_builder
