"""A write of rows: planned once, done by tasks wherever they run, finished as one commit."""
