"""`delta.connect.exceptions`: the conflicts of concurrent commits of Spark Connect, which are the same here.

Importing it lets pyspark raise children of these classes for what a server with delta-spark's jar reports.
"""

from pyspark.errors.exceptions.connect import EXCEPTION_CLASS_MAPPING, SparkConnectGrpcException

from delta_ds import exceptions
from delta_ds.spark.as_delta.delta.exceptions import *  # noqa: F403
from delta_ds.spark.as_delta.delta.exceptions import __all__ as __all__
from delta_ds.spark.errors.translation import class_of_jar

# Tools ask for both by the names that they have in delta-spark.
_DELTA_EXCEPTION_CLASS_MAPPING = {
    f"io.delta.exceptions.{name}": class_of_jar(getattr(exceptions, name), SparkConnectGrpcException)
    for name in __all__
}
EXCEPTION_CLASS_MAPPING.update(_DELTA_EXCEPTION_CLASS_MAPPING)
_delta_exception_registered = True
