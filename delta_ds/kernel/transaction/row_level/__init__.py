"""Row-level concurrency: a command that changed some rows of a file follows commits that touched others of them."""
