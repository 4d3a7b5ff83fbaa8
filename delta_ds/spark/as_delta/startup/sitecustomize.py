"""What Python runs at its start by itself, as the first `sitecustomize` that it finds.

`delta_ds.spark.as_delta.programs` puts this folder in front of `PYTHONPATH`. Nothing but the standard library and a few
small modules is imported, as every Python process below that one comes here. Source: Python, module `site`.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

from delta_ds.spark.as_delta.auto_register import install_as_delta


def start() -> None:
    """Prepare this process, and run the `sitecustomize` that this one hides, if there is one."""
    problem = install_as_delta()
    if problem is not None:
        from delta_ds.events.spark import MODULES_OF_DELTA_SPARK_STAY

        MODULES_OF_DELTA_SPARK_STAY.log(reason=problem)
    folder = Path(__file__).parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry) != folder]
    hidden = PathFinder.find_spec("sitecustomize")
    if hidden is not None and hidden.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(hidden)
        hidden.loader.exec_module(module)


if __name__ == "sitecustomize":
    start()
