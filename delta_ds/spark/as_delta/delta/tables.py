"""`delta.tables`: `DeltaTable` and what its methods hand out."""

from delta_ds.spark.api.builder import DeltaTableBuilder, IdentityGenerator
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder
from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]
