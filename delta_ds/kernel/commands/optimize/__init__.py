"""OPTIMIZE: compaction, Z-order, clustering and purge of deleted rows; the rows stay the same."""
