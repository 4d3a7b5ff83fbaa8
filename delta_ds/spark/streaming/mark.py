"""The option by which the session integration says that a data source is asked for a stream."""

from __future__ import annotations

# Without it the options of `readStream` look like those of `read`: Spark does not tell.
STREAM_MARK = "pydelta.isstream"
