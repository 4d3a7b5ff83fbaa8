"""What changes a whole table: each command is one transaction, planned and committed without Spark."""
