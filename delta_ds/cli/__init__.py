"""The command line `pydelta`: look at tables and look after them, without Spark. Needs the extra `cli`."""
