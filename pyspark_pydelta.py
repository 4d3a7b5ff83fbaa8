"""Lets Spark find the data source `pydelta` by itself.

Spark imports every top-level module named `pyspark_*` on the Python path, in every session, and registers its
`DefaultSource`. An error here would break sessions that never asked for this package, so nothing is
imported until Spark asks for the class, and a class that cannot be loaded counts as absent.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from delta_ds.spark.engines.portable.source import DeltaSource
    except ImportError as error:
        raise AttributeError(f"the data source 'pydelta' cannot be loaded: {error}") from error
    return DeltaSource
