"""Delta's own SQL statements: text to records, without Spark."""
