"""What the protocol says of tables: actions, features, properties, schemas, expressions, options, values."""
