"""Data files to rows of the table."""
