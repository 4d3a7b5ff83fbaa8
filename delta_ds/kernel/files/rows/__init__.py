"""Incoming rows to rows of the table: names, casts, defaults, generated values, checks."""
