"""The command line `pydelta`: inspect and maintain tables without Spark. Needs the extra `cli`."""
