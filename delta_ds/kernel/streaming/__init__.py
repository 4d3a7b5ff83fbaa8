"""Streams from and into tables: offsets, what lies between two of them, and batches that are committed once."""
