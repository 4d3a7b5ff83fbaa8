"""The matrix of engines: one table a feature, written by this package and read by every engine that pip brings."""
