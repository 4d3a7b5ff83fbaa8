"""What goes wrong, as calls that delta-spark and this package have alike, on tables of the kernel."""

from __future__ import annotations

from spark_tests.engines.interop.failures import everyday, places, statements
from spark_tests.engines.interop.failures.failure import Engine, Failure, Tables

__all__ = ["FAILURES", "Engine", "Tables"]

FAILURES: dict[str, Failure] = {**everyday.FAILURES, **places.FAILURES, **statements.FAILURES}
