"""Calls of the operating system that fail by chance, for tables on a local disk."""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from spark_tests.faults.concurrency.faults import Calls

_ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT)


class Chances(Calls):
    """Fails a share of the calls below a folder: before them, halfway (a write), or after they took effect.

    Parameters
    ----------
    rate
        Which share.
    told
        Is called with the kind of each fault.
    """

    def __init__(self, folder: str, seed: int, rate: float, told: Callable[[str], None]) -> None:
        super().__init__(folder)
        self._root = os.path.abspath(folder) + os.sep
        self._random = random.Random(seed)
        self._rate = rate
        self._told = told

    def run(
        self, call: str, path: Any, action: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        path = os.path.abspath(os.fspath(path))
        if not path.startswith(self._root) or self._random.random() >= self._rate:
            return action()
        number = self._random.choice(_ERRORS)
        when = self._random.choice(("before", "halfway", "after"))
        if when == "halfway" and half is not None:
            half()
        elif when == "after":
            action()
        else:
            when = "before"
        self._told(f"{errno.errorcode[number]} {when}")
        raise OSError(number, os.strerror(number), path)


def total(counts: list[dict[str, int]]) -> Counter[str]:
    """All counts together."""
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    return found
