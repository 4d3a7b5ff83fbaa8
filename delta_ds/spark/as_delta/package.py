"""Where the package `delta` comes from: another distribution, or else this one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from delta_ds.spark.as_delta.import_hooks import find_elsewhere

_NAME = "delta"
_FOLDER = Path(__file__).with_name(_NAME)


def install_package() -> None:
    """Let imports of `delta` find this package's modules of that name, where nobody else has such a package."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def other_package() -> str | None:
    """Where a package `delta` that is not this one's is, such as delta-spark's; None: nowhere."""
    module = sys.modules.get(_NAME)
    spec = module.__spec__ if module is not None else find_elsewhere(_NAME, None, _finder)
    # Without a file it is a folder that happens to be called so, of data for instance: a real package goes before that.
    if spec is None or spec.origin is None or spec.loader is None:
        return None
    # The distribution delta-ds-names is made of the modules here.
    source = getattr(spec.loader, "get_source", None)
    return None if source is not None and "delta_ds" in (source(_NAME) or "") else spec.origin


class _Finder(MetaPathFinder):
    """Finds the package `delta` here, unless it is elsewhere."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _NAME or other_package() is not None:
            return None
        return spec_from_file_location(
            _NAME, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
        )


_finder = _Finder()
