"""A snapshot and a predicate to the files, tasks and rows of a read."""
