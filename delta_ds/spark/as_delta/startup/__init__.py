"""A folder for `PYTHONPATH`: every Python that is started with it runs code written for delta-spark."""
