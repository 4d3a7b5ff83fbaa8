"""Catalog-managed tables: coordinators that ratify commits, and the storage and log store that go by them."""
