"""The stream reader for Spark 4.2 and later, with read limits and `availableNow`."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from delta_ds.kernel.commands.streaming.offsets import ALL_AVAILABLE, ReadLimits, StreamOffset
from delta_ds.spark.engines.portable.stream_reader import DeltaStreamReader
from delta_ds.spark.errors.translation import with_error_parameters


@with_error_parameters
class Spark42StreamReader(DeltaStreamReader, SupportsTriggerAvailableNow):
    """Bounds batches by the options, and a run with `availableNow` by what was there when it began."""

    _bound: StreamOffset | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the options as Spark expresses it: files or bytes, not both."""
        limits = self._source.default_limits
        if limits.max_files is not None:
            return ReadMaxFiles(limits.max_files)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the batch that begins at `start`.

        Raises
        ------
        DeltaError
            As `StreamSource.latest_offset`.
        """
        limits = self._limits(limit)
        return self._source.latest_offset(self._parse_offset(start), limits, self._bound).to_dict()

    def _limits(self, limit: ReadLimit) -> ReadLimits:
        if isinstance(limit, ReadAllAvailable):
            return ALL_AVAILABLE
        if limit == self.getDefaultReadLimit():
            return self._source.default_limits
        if isinstance(limit, ReadMaxFiles):
            return ReadLimits(max_files=limit.max_files)
        if isinstance(limit, ReadMaxBytes):
            return ReadLimits(max_bytes=limit.max_bytes)
        # Limits of rows, which Spark only gives to readers that asked for them.
        return self._source.default_limits

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the end of the log: a run with `availableNow` ends there."""
        self._bound = self._source.available_now()
