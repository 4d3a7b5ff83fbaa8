"""The documents do what they say: every code block of `docs/` and README.md is run, compared or checked."""
