"""Calls on a table's log, here or on the server of Spark Connect."""
