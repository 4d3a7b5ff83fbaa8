"""Predicates and other expressions: parsed, bound to a schema, evaluated on Arrow data."""
