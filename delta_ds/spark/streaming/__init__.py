"""Streams in Spark: a table read and written by micro-batches, on top of `delta_ds.kernel.streaming`."""
