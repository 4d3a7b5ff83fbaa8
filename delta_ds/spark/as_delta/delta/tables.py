"""`delta.tables`: `DeltaTable` and what its methods hand out."""

from delta_ds.spark.builder import DeltaTableBuilder, IdentityGenerator
from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder
from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder
from delta_ds.spark.table import DeltaTable

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]
