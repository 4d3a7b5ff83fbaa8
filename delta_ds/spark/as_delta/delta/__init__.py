"""The package `delta` of delta-spark, by its public names: what this package has in their place.

Lies here once. `install_as_delta` offers it as `delta`, and so does the distribution `delta-ds-names`.
"""

from importlib import import_module

from pyspark.util import is_remote_only

from delta_ds.spark.as_delta.auto_register import install_auto_register
from delta_ds.spark.as_delta.delta.pip_utils import configure_spark_with_delta_pip
from delta_ds.spark.as_delta.delta.tables import DeltaTable
from delta_ds.spark.as_delta.delta.version import __version__

__all__ = ["DeltaTable", "configure_spark_with_delta_pip", "__version__"]

if __name__ == "delta":
    # Whoever imports delta-spark's package expects that settings are all that a session needs.
    install_auto_register()
    if not is_remote_only():
        # What the JVM throws is raised as the classes there.
        import_module(".exceptions.captured", __name__)
