"""Write checkpoints: state, rows, schema and files."""
