"""Commands that change what a table is: its protocol, properties, constraints and columns."""
