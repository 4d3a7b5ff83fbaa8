"""What `spark.read` and `df.write` cannot say to a Python data source, said for them."""
