"""What every room of the Spark half stands on: kinds of sessions, names, types, settings, grammar."""
