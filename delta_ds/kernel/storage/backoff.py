"""Waiting times between attempts."""

from __future__ import annotations

import time

_FIRST = 0.05  # seconds
_LONGEST = 2.0

_sleep = time.sleep


def pause(attempt: int) -> None:
    """Wait longer with each attempt (0, 1, ...), by chance, so that rivals do not meet again."""
    import random

    _sleep(random.uniform(0, min(_LONGEST, _FIRST * 2.0**attempt)))
