"""What DELETE, UPDATE and MERGE leave in a table: rows written anew, rows that no longer count, one commit."""
