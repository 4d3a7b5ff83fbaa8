"""The page of a table, `pydelta ui`: a small server of our own, its answers and its files. Nothing is ever written."""
