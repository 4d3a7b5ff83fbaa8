"""Tables whose logs are too long for the driver: what is planned, by the tasks of Spark jobs."""
