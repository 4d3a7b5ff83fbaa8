"""Streams in Spark: tables read and written by micro-batches."""
