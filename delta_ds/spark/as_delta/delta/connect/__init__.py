"""`delta.connect`: one `DeltaTable` serves classic sessions and Spark Connect here."""

from importlib import import_module

from delta_ds.spark.api.table import DeltaTable

__all__ = ["DeltaTable"]

# By the name that this package is imported by: what a server reports is raised as the classes there.
import_module(".exceptions", __name__)
