"""The settings by which programs ask for delta-spark's jar, left out where there is no such jar.

A program written for delta-spark names its session extension, its catalog and its Maven coordinates. Spark cannot load
a catalog whose class is not there, and fetches packages that nobody needs, or fails where it has no network. Where
delta-spark's Python package is installed, a program may need the jar, and its packages stay.

Where the package `delta`, and the version of delta-spark, come from: another distribution, or else this one.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from delta_ds.events.spark import DELTA_SPARK_SETTING_LEFT_OUT
from delta_ds.spark.as_delta.import_hooks import find_elsewhere

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_NAME = "delta"
_FOLDER = Path(__file__).with_name(_NAME)
_DISTRIBUTION = "delta-spark"


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

    def find_distributions(self, context: Any = None) -> Iterator[Distribution]:
        """Answer who asks for the version of delta-spark by the name of its distribution; it is in no list of all."""
        name = getattr(context, "name", None) or ""
        if re.sub(r"[-_.]+", "-", name).lower() == _DISTRIBUTION and other_package() is None:
            yield _distribution()


def _distribution() -> Distribution:
    from importlib.metadata import Distribution

    class DeltaSpark(Distribution):
        def read_text(self, filename: str) -> str | None:
            if filename != "METADATA":
                return None
            version = run_path(str(_FOLDER / "version.py"))["__version__"]
            return f"Metadata-Version: 2.1\nName: {_DISTRIBUTION}\nVersion: {version}\n"

        def locate_file(self, path: Any) -> Path:
            return Path(_FOLDER.parent, path)

    return DeltaSpark()


_finder = _Finder()


EXTENSIONS = "spark.sql.extensions"
SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
PACKAGES = "spark.jars.packages"
NAMES = (EXTENSIONS, SESSION_CATALOG, PACKAGES)

_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SUBMIT_PACKAGES = "--packages"
_CLASSES = ("io.delta.sql.", "org.apache.spark.sql.delta.")
# Others of the group, such as those of Delta Sharing, are no part of delta-spark.
_ARTIFACT = re.compile(r"io\.delta:delta-(core|spark|storage|contribs)[_:-].*")
# What was told: once a process, as programs such as dbt apply their settings again with every statement.
_told: set[tuple[str, str]] = set()


def remaining_settings(settings: Mapping[str, Any], loadable: Callable[[str], bool]) -> dict[str, Any]:
    """Settings without those that only delta-spark's jar could honour.

    Parameters
    ----------
    settings
        By their names.
    loadable
        Whether Spark can load a class, by its name.

    Returns
    -------
    dict
        All others as they are; of a list with other entries, these. Each that is left out is told in one line of the
        log, once.

    >>> remaining_settings({"spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0,org.x:y:1"}, lambda name: False)
    {'spark.jars.packages': 'org.x:y:1'}
    """
    kept = {}
    for name, value in settings.items():
        text = _remaining(name, value, loadable) if name in NAMES else value
        if text != "":
            kept[name] = text
    return kept


def remaining_packages(packages: Iterable[str]) -> list[str]:
    """Maven coordinates but for those of delta-spark's jars, unless its Python package is there to use them."""
    if other_package() is not None:
        return list(packages)
    return [entry for entry in packages if not _ARTIFACT.fullmatch(entry.strip())]


def remaining_submit_arguments() -> None:
    """Take delta-spark's packages out of the arguments that pyspark starts its JVM with."""
    before = os.environ.get(_SUBMIT_ARGUMENTS, "")
    if "io.delta:" not in before:
        return
    arguments, kept = iter(shlex.split(before)), []
    for argument in arguments:
        name, _, packages = argument.partition("=")
        if name != _SUBMIT_PACKAGES:
            kept.append(argument)
            continue
        packages = packages or next(arguments, "")
        if remaining := _remaining(PACKAGES, packages, lambda name: True):
            kept += [_SUBMIT_PACKAGES, remaining]
    os.environ[_SUBMIT_ARGUMENTS] = shlex.join(kept)


def _remaining(name: str, value: Any, loadable: Callable[[str], bool]) -> str:
    entries = str(value).split(",")
    if name == PACKAGES:
        kept, reason = remaining_packages(entries), "Delta tables need no jar here"
    else:
        kept = [entry for entry in entries if not _is_missing(entry.strip(), loadable)]
        reason = "the class is in no jar of this session, and Delta tables need none"
    text = ",".join(kept)
    if len(kept) < len(entries) and (name, str(value)) not in _told:
        _told.add((name, str(value)))
        DELTA_SPARK_SETTING_LEFT_OUT.log(name=name, value=value, reason=reason)
    return text


def _is_missing(class_name: str, loadable: Callable[[str], bool]) -> bool:
    return class_name.startswith(_CLASSES) and not loadable(class_name)
