"""`delta.exceptions.captured`: the conflicts of concurrent commits of classic sessions, which are the same here.

Importing it lets pyspark raise these classes for what delta-spark's jar throws, where a session has that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors.exceptions import captured

from delta_ds import exceptions
from delta_ds.spark.as_delta.delta.exceptions import *  # noqa: F403
from delta_ds.spark.as_delta.delta.exceptions import __all__ as __all__
from delta_ds.spark.errors.translation import class_of_jar
from delta_ds.spark.session.state import put_beneath

_CONFLICTS = {
    f"io.delta.exceptions.{name}": class_of_jar(getattr(exceptions, name), captured.CapturedException)
    for name in __all__
}


def _with_conflicts(original: Callable[..., Any]) -> Callable[..., Any]:
    def convert_exception(e: Any) -> Any:
        kind = _CONFLICTS.get(str(e.toString()).partition(":")[0])
        return original(e) if kind is None else kind(origin=e)

    return convert_exception


put_beneath(_with_conflicts)
# Tools ask for it by the name that it has in delta-spark.
_delta_exception_patched = True
