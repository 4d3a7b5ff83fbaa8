"""The Delta protocol without Spark: reading, writing and maintaining tables in a plain Python process."""
