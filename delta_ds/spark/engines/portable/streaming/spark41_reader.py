"""The stream reader for Spark 4.1, which asks for the latest offset without limits.

The reader keeps to the limits by itself as soon as it knows where the query is: Spark plans the batch that it has read
last, also after a restart (`AcceptsLatestSeenOffset`), before it asks for more. Only the first question of a process
that has planned nothing yet must be answered with the end of the log: it may be that of `Trigger.AvailableNow`, for
which Spark 4.1 asks once and takes the answer for all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from delta_ds.kernel.commands.streaming.offsets import StreamOffset
from delta_ds.spark.engines.portable.streaming.reader import DeltaStreamReader
from delta_ds.spark.errors.translation import with_error_parameters


@with_error_parameters
class Spark41StreamReader(DeltaStreamReader):
    """Answers `latestOffset()` by the offsets it has been asked about."""

    _position: StreamOffset | None = None

    # Spark 4.2 gave it two parameters, and goes by their number.
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """The end of the next batch; the end of the log where it is not known what comes next."""
        if self._position is None:
            return self._source.all_available().to_dict()
        return self._source.latest_offset(self._position).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found = super().partitions(start, end)
        self._position = self._parse_offset(end)
        return found
