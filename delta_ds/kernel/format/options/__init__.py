"""The options of reads, writes and streams, each one record: parsed, checked, unknown ones refused."""
