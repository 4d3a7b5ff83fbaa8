"""`INSERT INTO` and `INSERT OVERWRITE` on a view of a native scan: a write like every other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from delta_ds.spark.native.jvm import Jvm, NotNative, passed_on
from delta_ds.spark.source import FORMAT

if TYPE_CHECKING:
    from delta_ds.kernel.snapshot import Snapshot


class Insert:
    """`java.util.function.BiFunction`: rows, whose columns Spark has put in the order of the table, and whether to
    overwrite.
    """

    def __init__(self, jvm: Jvm, snapshot: Snapshot, options: Mapping[str, str]) -> None:
        self._jvm = jvm
        self._options = {**options, "path": snapshot.storage.url}

    def apply(self, rows: Any, overwrite: bool) -> None:
        with passed_on(self._jvm):
            from pyspark.sql import DataFrame

            from delta_ds.spark.native.writer import save

            frame = DataFrame(rows, self._jvm.spark)
            try:
                save(frame, self._options, overwrite=overwrite)
            except NotNative:
                mode = "overwrite" if overwrite else "append"
                frame.write.format(FORMAT).mode(mode).options(**self._options).save()

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]
