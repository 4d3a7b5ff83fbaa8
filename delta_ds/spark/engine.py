"""`engineInfo` of commits made from Spark."""

from __future__ import annotations

from delta_ds._version import __version__


def engine_info() -> str:
    """The `engineInfo` of a commit: the version of Spark, and of this package."""
    import pyspark

    return f"Apache-Spark/{pyspark.__version__} delta_ds/{__version__}"
