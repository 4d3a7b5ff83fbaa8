"""What a session has set of delta-spark, and a warning for what has no effect.

The settings: `kernel/format/options/settings.py`, `ignored_settings.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.events.spark import SETTING_WITHOUT_EFFECT
from delta_ds.kernel.format.options.ignored_settings import MACHINERY, SETTINGS
from delta_ds.kernel.format.options.session_facts import CONFLICT_DETECTION, DEFAULTS_PREFIX, is_default
from delta_ds.kernel.format.options.settings import PROPERTY_DEFAULTS, SETTING_PREFIX
from delta_ds.kernel.format.properties import PREFIX, PROPERTIES
from delta_ds.spark.base.kinds.kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject


_BY_NAME = {setting.full_name: setting for setting in (*SETTINGS, *MACHINERY) if setting != PROPERTY_DEFAULTS}
# What each session has been told, so that it is told once.
_warned: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def session_settings(
    spark: SparkSession | None, settings: Mapping[str, str | None] | None = None
) -> dict[str, str]:
    """All settings of delta-spark that a session has, and what writes need of ours; those without effect are told of.

    Each is told of once. One question to the JVM or the server; none without a session, or with `settings`, which are
    all that the session has.
    """
    if spark is None:
        return {}
    found = {
        name: text
        for name, text in (all_settings(spark) if settings is None else settings).items()
        if name.startswith((SETTING_PREFIX, CONFLICT_DETECTION)) and text is not None
    }
    warned = _warned.setdefault(spark, set())
    for name, why in without_effect(found).items():
        if name not in warned:
            warned.add(name)
            SETTING_WITHOUT_EFFECT.log(name=name, reason=why)
    return found


def without_effect(settings: Mapping[str, str]) -> dict[str, str]:
    """Why settings have no effect, by name; not those set to what holds anyway."""
    out: dict[str, str] = {}
    for name, text in sorted(settings.items()):
        if not name.startswith(SETTING_PREFIX):
            continue
        known = _BY_NAME.get(name)
        if known is None:
            if not is_default(name):
                out[name] = f"it has no effect here{_nearest(name)}"
        elif not known.honoured and text.strip().lower() != str(known.default).lower():
            out[name] = known.meaning
    return out


def _nearest(name: str) -> str:
    # Without the prefix, which would make any two names alike.
    prefix = DEFAULTS_PREFIX if name.startswith(DEFAULTS_PREFIX) else SETTING_PREFIX
    if prefix == DEFAULTS_PREFIX:
        known = [key[len(PREFIX) :] for key in PROPERTIES]
    else:
        known = [setting.name for setting in _BY_NAME.values() if setting.honoured]
    by_lower = {key.lower(): key for key in known}
    near = difflib.get_close_matches(name[len(prefix) :].lower(), by_lower, 1, cutoff=0.85)
    return f"; did you mean {prefix}{by_lower[near[0]]}?" if near else ""


def all_settings(spark: SparkSession) -> Mapping[str, str | None]:
    """All settings of a session: one question to the JVM or the server."""
    return dict(spark.conf.getAll) if is_connect(spark) else texts_of(spark.conf._jconf)


def texts_of(configuration: JavaObject) -> dict[str, str | None]:
    """All settings of a session of the JVM, by its `RuntimeConfig`."""
    # In one text: a map of Scala would be asked for its entries one by one.
    entry, value = "\0\1", " -> "
    text = str(configuration.getAll().mkString(entry))
    return {name: setting for name, _, setting in (pair.partition(value) for pair in text.split(entry))}
