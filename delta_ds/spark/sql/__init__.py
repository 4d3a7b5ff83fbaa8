"""SQL in classic sessions: statements, and what Spark's parser, catalog and analyser ask of this package."""
