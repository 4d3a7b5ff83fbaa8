"""`delta.connect.tables`: the classes of `delta.tables`, which serve Spark Connect too."""

from delta_ds.spark.as_delta.delta.tables import *  # noqa: F403
from delta_ds.spark.as_delta.delta.tables import __all__ as __all__
