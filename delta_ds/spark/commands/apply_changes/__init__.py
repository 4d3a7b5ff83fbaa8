"""Slowly changing dimensions: events of rows applied to a table, as type 1 or type 2, in batches and streams."""
