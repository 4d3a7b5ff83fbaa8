"""Data files: their values, reading them, preparing rows for them, writing them."""
