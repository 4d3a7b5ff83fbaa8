"""`delta.connect`: one `DeltaTable` serves classic sessions and Spark Connect here."""

from delta_ds.spark.api.table import DeltaTable

__all__ = ["DeltaTable"]
