"""Tables as sources and sinks of streams: offsets, batches, schema changes, exactly-once commits."""
