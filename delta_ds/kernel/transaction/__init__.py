"""The optimistic transaction: what was read, what is to be committed, and whether another commit contradicts it."""
