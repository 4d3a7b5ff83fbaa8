"""How rows are read and written: by Spark's own reader and writer, by the data source, through Spark Connect."""
