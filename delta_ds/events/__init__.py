"""Every log event as one record: its name, level, fields, what it means and what to do; and a formatter for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_ds.events.formatter import JsonFormatter as JsonFormatter

__all__ = ["JsonFormatter"]


def __getattr__(name: str) -> Any:
    # On first use: processes that Spark starts log, and format nothing.
    if name != "JsonFormatter":
        raise AttributeError(f"module 'delta_ds.events' has no attribute {name!r}")
    from delta_ds.events.formatter import JsonFormatter

    return JsonFormatter
