"""The settings by which programs ask for delta-spark's jar, left out where there is no such jar.

A program written for delta-spark names its session extension, its catalog and its Maven coordinates. Spark cannot load
a catalog whose class is not there, and fetches packages that nobody needs, or fails where it has no network. Where
delta-spark's Python package is installed, a program may need the jar, and its packages stay.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from delta_ds.events.spark import DELTA_SPARK_SETTING_LEFT_OUT
from delta_ds.spark.as_delta.package import other_package

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
