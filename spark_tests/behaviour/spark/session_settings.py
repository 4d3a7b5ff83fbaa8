"""Settings of a session within a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set them, and what was before again at the end."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, text in settings.items():
            spark.conf.set(name, text)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)
