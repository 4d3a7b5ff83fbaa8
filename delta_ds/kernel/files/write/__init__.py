"""Rows of the table to data files, with their statistics and `add` actions."""
