"""Which commit last wrote each row of a table that tracks rows, and who made it."""
