"""The data source `pydelta`: reading, writing and streams by Spark's public interface alone."""
