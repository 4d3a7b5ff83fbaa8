"""Writes of rows: one plan, tasks wherever they run, one commit."""
