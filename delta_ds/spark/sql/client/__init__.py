"""`spark.sql` of Spark Connect clients whose server has no catalog for Delta tables."""
