"""Pictures of tables by matplotlib: files over time, ranges of a column, what is skipped. Needs the extra `plot`."""
