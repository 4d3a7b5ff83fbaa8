"""What the protocol says of tables, without I/O: actions, features, properties, schemas, expressions, options, values."""
