"""Changes of a table's description: protocol, properties, constraints and columns, without touching rows."""
