"""Objects that Spark sends to Python processes on the same machine bring along where this package is imported from.

The process of a stream's source has not what `addPyFile`, `--py-files` and artifacts of Spark Connect have sent on its
path: Spark has it look in a folder that is not there. It runs beside the process that pickles the source, on the
driver's machine, and finds the package in the same place.

Source: Spark, `PythonStreamingSourceRunner`, `PythonWorkerUtils.writeSparkFiles`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

_C = TypeVar("_C", bound=type)

# Text, as a function would be found by its module, which is in the package. What an object holds comes after it.
_MAKE = """
import importlib.machinery, os, sys
found = importlib.machinery.PathFinder.find_spec("delta_ds")
if "delta_ds" not in sys.modules and (found is None or os.path.dirname(found.origin or "") != package):
    sys.path.insert(0, os.path.dirname(package))
made = object.__new__(getattr(importlib.import_module(module), name))
"""


def brings_package(owner: _C) -> _C:
    """A class whose instances find this package where they are unpickled, on the machine where they were pickled."""

    def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
        known = {
            "code": _MAKE,
            "package": str(Path(__file__).parents[1]),
            "module": type(self).__module__,
            "name": type(self).__qualname__,
        }
        return eval, ("exec(code) or made", known), self.__dict__

    owner.__reduce_ex__ = reduce  # type: ignore[method-assign, assignment]
    return owner
