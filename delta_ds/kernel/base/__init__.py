"""What has no idea of Delta: texts, buffers, types of values, the environment, progress."""
