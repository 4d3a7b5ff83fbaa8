"""How rows are read and written and calls answered: by Spark's own reader and writer, by the data source, over Spark Connect."""
