"""Unity Catalog as coordinator: the client of its REST API for Delta tables."""
