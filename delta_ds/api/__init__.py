"""What users without Spark hold: tables by path or by name, their versions, and transactions on them."""
