"""How long the tests may take: DELTA_DS_FULL=1 for all that there is, DELTA_DS_QUICK=1 for fewer random examples."""

from __future__ import annotations

import os

FULL = os.environ.get("DELTA_DS_FULL") == "1"
QUICK = os.environ.get("DELTA_DS_QUICK") == "1"


def examples(number: int) -> int:
    """How many random examples a law is tried on: `number`, or a tenth of it in a quick run."""
    return max(number // 10, 5) if QUICK else number
