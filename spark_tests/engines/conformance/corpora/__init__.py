"""What delta-spark made of tables, races and programs, recorded: where the records lie.

The README.md beside this file says what they are.
"""

from __future__ import annotations

import os
from pathlib import Path

SHIPPED = Path(__file__).resolve().parent
WHOLE = SHIPPED.parents[2].parent / "shared"


def corpus(name: str) -> Path:
    """The folder of `acceptance`, `conflicts`, `differential`, `writes` and the like.

    The one that `DELTA_DS_<NAME>` names; else the whole corpus, where it lies beside the repository; else the part of
    it that is shipped with the tests.
    """
    named = os.environ.get(f"DELTA_DS_{name.upper()}")
    if named:
        return Path(named)
    return WHOLE / name if (WHOLE / name).is_dir() else SHIPPED / name
