"""Commands on whole tables, each one transaction, planned and committed without Spark."""
