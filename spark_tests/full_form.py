"""Whether the tests run in their full form: what takes many minutes is shorter, or left out, unless it is asked for."""

from __future__ import annotations

import os

FULL = os.environ.get("DELTA_DS_FULL") == "1"
