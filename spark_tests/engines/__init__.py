"""What other engines, stores and services write, read and answer."""
