"""The command `bench`: how fast a table is loaded, planned, read and committed to on its store."""
