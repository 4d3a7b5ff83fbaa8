"""All tables that are written for other engines."""

from __future__ import annotations

from spark_tests.engines.interop import tables_of_features, tables_of_layouts, tables_of_logs, tables_of_types
from spark_tests.engines.interop.written import CASES

__all__ = ["CASES", "tables_of_features", "tables_of_layouts", "tables_of_logs", "tables_of_types"]
