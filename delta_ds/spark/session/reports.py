"""Raise failures that Spark reports of this package as its errors.

A DataFrame fails when it is used, long after `load`, in calls that are none of this package's. Classic sessions and
Spark Connect each have one function that every failure goes through.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from delta_ds.spark.errors.translation import convert_exception

_NAME = "convert_exception"
_ORIGINAL = "_delta_ds_original"


def install(connect: bool) -> None:
    """Make pyspark raise this package's errors; doing so again is harmless."""
    module = _module(connect)
    original = getattr(module, _NAME)
    if hasattr(original, _ORIGINAL):
        return

    @functools.wraps(original)
    def replacement(*arguments: Any, **keywords: Any) -> BaseException:
        return convert_exception(original, *arguments, **keywords)

    setattr(replacement, _ORIGINAL, original)
    setattr(module, _NAME, replacement)


def uninstall(connect: bool) -> None:
    """Restore pyspark's function; does nothing where it is in place."""
    module = _module(connect)
    original = getattr(getattr(module, _NAME), _ORIGINAL, None)
    if original is not None:
        setattr(module, _NAME, original)


def _module(connect: bool) -> ModuleType:
    if connect:
        # It has the function under a name of its own.
        import pyspark.sql.connect.client.core as core

        return core
    from pyspark.errors.exceptions import captured

    return captured
