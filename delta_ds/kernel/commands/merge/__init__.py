"""MERGE in one process, without Spark: clauses, the names of both sides, the join, the rows and the commit."""
