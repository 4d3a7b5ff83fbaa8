"""Catalyst expressions, as `toJSON` gives them, to expressions of the kernel."""
