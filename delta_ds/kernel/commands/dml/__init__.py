"""DELETE, UPDATE and MERGE in the kernel: candidate files, the plan, the tasks and the commit."""
