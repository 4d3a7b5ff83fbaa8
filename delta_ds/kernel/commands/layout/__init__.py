"""How a table's files lie: their number over time, their ranges of a column, what a lookup reads of them."""
