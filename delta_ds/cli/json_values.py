"""Values and errors in JSON's types, for `--json` and the page of a table."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from delta_ds.exceptions import DeltaError


def plain(value: Any) -> Any:
    """A value in JSON's types: times in ISO form, decimals and what JSON has no number for as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def shown(value: Any) -> str:
    """A value as a cell of a table; empty for null."""
    if value is None:
        return ""
    value = plain(value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def error_body(error: DeltaError) -> dict[str, Any]:
    """An error as programs read it."""
    return {
        "error": type(error).__name__,
        "condition": error.condition,
        "message": error.text,
        "parameters": error.parameters,
    }
