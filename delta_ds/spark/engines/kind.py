"""The kind of a session's Spark, and `engineInfo` of its commits."""

from __future__ import annotations

from typing import Any

from delta_ds._version import __version__


def engine_info() -> str:
    """The `engineInfo` of a commit: the version of Spark, and of this package."""
    import pyspark

    return f"Apache-Spark/{pyspark.__version__} delta_ds/{__version__}"


def is_connect(owner: Any) -> bool:
    """Whether a session, or a reader or writer of one, is of Spark Connect."""
    return type(owner).__module__.startswith("pyspark.sql.connect")
