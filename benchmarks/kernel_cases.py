"""What the measured processes of the part `kernel` ask for; nothing of delta_ds, for the peers' environments."""

RANGE = "id BETWEEN 1000 AND 1999"
FILTER = "quantity = 50"
SET = {"amount": "amount + 1"}
READS = {
    "all": "all columns, one Arrow table",
    "batches": "all columns, batch by batch",
    "sum": "sum by key",
    "range": "a range in one file",
    "filter": "1 % of the rows of every file",
    "count": "count",
}
CHANGES = {
    "delete": "DELETE of 1 % of the rows of every file",
    "update": "UPDATE of one column in 1 % of the rows of every file",
}
