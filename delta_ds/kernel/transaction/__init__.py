"""The optimistic transaction: reads, actions, the commit loop, conflict checks."""
