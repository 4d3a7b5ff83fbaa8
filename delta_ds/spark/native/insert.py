"""`INSERT INTO` and `INSERT OVERWRITE` on a view of a native scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.spark.native.jvm import Jvm, passed_on

if TYPE_CHECKING:
    from delta_ds.kernel.snapshot import Snapshot


class Insert:
    """`java.util.function.BiFunction`: rows, whose columns Spark has put in the order of the table, and whether to
    overwrite.
    """

    def __init__(self, jvm: Jvm, url: str, options: Mapping[str, str]) -> None:
        self._jvm = jvm
        self._options = {**options, "path": url}

    def apply(self, rows: Any, overwrite: bool) -> None:
        with passed_on(self._jvm):
            from pyspark.sql import DataFrame

            from delta_ds.spark.session.writing import APPEND, OVERWRITE, save

            frame = DataFrame(rows, self._jvm.spark)
            save(frame, None, OVERWRITE if overwrite else APPEND, self._options)

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


def refusal(snapshot: Snapshot) -> str:
    """The error for an insert into a view of one version, in the form that `as_delta_error` reads."""
    error = UnsupportedOperationError(
        f"the view shows version {snapshot.version} of {snapshot.storage.url}, and a version cannot be changed; "
        "insert into a view that was made without versionAsOf and timestampAsOf. Nothing was written"
    )
    return f"delta_ds.exceptions.{type(error).__name__}: {error}"
