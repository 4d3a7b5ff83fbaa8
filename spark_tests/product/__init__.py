"""What users are given beside the code: documents, examples, wheels, the public surface."""
