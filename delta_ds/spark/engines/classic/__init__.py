"""Spark's own Parquet reader and writer over the files of a table, in classic sessions."""
