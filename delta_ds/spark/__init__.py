"""The PySpark half: the data source `pydelta`, `DeltaTable`, streams, and Spark's own reader and writer."""
