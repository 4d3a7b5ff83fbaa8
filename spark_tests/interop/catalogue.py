"""All tables that are written for other engines."""

from __future__ import annotations

from spark_tests.interop import tables_of_types
from spark_tests.interop.written import CASES

__all__ = ["CASES", "tables_of_types"]
