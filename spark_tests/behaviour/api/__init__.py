"""What users without Spark hold: tables by path, their versions, and their rows in other libraries."""
