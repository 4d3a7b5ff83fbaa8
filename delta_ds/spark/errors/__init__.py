"""Errors as users of Spark see them: of the kernel, of Java, of jobs, of misuse."""

from delta_ds.spark.errors.translation import as_delta_error, delta_errors

__all__ = ["as_delta_error", "delta_errors"]
