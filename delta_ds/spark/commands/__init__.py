"""The commands of `DeltaTable`: Spark evaluates, the kernel plans and commits."""
