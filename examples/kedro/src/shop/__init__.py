"""A small Kedro project on Delta tables."""
