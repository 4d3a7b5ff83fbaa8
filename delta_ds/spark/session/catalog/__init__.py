"""The session catalog of classic sessions: our tables in it, their entries in the metastore, from names to tables."""
