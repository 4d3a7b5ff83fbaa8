"""Iceberg: tables whose files readers of Iceberg understand, and the metadata of Iceberg beside the log."""
