"""Writing rows: one request whichever way they came in, its options completed, its columns matched, carried out."""
