"""Streams of catalog-managed tables: the log of their schemas is a folder like any other."""

from __future__ import annotations

from pathlib import Path

from delta_ds.kernel.commands.streaming.schema_log import SchemaLog
from delta_ds.kernel.format.options.stream_read import parse_stream_read_options
from spark_tests.behaviour.kernel.storage.coordination.helpers import Managed


def test_the_log_of_schemas_is_no_table_of_the_coordinator(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(1)
    place = str(tmp_path / "checkpoint/_schemas")
    given = {f"storage.{name}": value for name, value in managed.options.items()}
    options = parse_stream_read_options({"path": str(managed.path), "schemaTrackingLocation": place, **given})
    state = managed.open().open_snapshot().table_state
    log = SchemaLog(options, state)
    log.append(state)
    current = SchemaLog(options, state).current
    assert current is not None
    assert next(Path(place).iterdir()).name.startswith("_schema_log_")
