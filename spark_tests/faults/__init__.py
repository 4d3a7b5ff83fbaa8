"""What is left when processes die, stores fail, others commit at the same time, or files are damaged."""
