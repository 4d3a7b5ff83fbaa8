"""MERGE: clauses, sides, matches, rows, schema evolution."""
