"""Applications on clusters of real processes: tasks fail, executors are killed, and tables are as they should be."""
