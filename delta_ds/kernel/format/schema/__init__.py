"""Schemas: types, column mapping, evolution, type widening."""
