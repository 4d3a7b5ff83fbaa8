"""What users write in commands, resolved by Spark: expressions, assignments, casts."""
