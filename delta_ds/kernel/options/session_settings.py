"""Session settings for processes without a session, handed on as one write option in JSON.

Spark plans, writes and commits a data source's rows in processes of their own, and streams do so long after they
were started.

Source: delta-spark, `DeltaConfigs.mergeGlobalConfigs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import tzinfo

from delta_ds.conditions.options import INVALID_CONF_VALUE, INVALID_CONF_VALUE_TYPE_MISMATCH
from delta_ds.kernel.options.settings import CONSTRAINT_CHECK, DATA_COLUMNS, SETTING_PREFIX
from delta_ds.kernel.properties import FEATURE_PREFIX, PREFIX, PROPERTIES

SETTINGS_OPTION = "sessionSettings"
DEFAULTS_PREFIX = f"{SETTING_PREFIX}properties.defaults."
AUTO_COMPACT_PREFIX = f"{SETTING_PREFIX}autoCompact."

# What decides whether a command or write that changes rows contradicts a commit that came first.
CONFLICT_DETECTION = "spark.pydelta.conflictDetection"
BY_ROWS, BY_STATISTICS, BY_FILES = "rows", "statistics", "files"


def is_on(settings: Mapping[str, str], name: str) -> bool:
    """Whether a setting that is true by default is true.

    Raises
    ------
    InvalidOptionError
        It is neither `true` nor `false`.
    """
    text = settings.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise INVALID_CONF_VALUE_TYPE_MISMATCH(setting=name, value=settings[name])
    return text == "true"


def conflict_detection(text: str | None) -> str:
    """`BY_ROWS`, `BY_STATISTICS` or `BY_FILES`, by the text of the setting; None: it is not set.

    Raises
    ------
    InvalidOptionError
        The text says something else.
    """
    word = BY_ROWS if text is None else text.strip().lower()
    if word not in (BY_ROWS, BY_STATISTICS, BY_FILES):
        raise INVALID_CONF_VALUE(
            setting=CONFLICT_DETECTION, value=text, reason=f"it is {BY_ROWS}, {BY_STATISTICS} or {BY_FILES}"
        )
    return word


def settings_for_tasks(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of a session's settings that processes without a session need."""
    prefixes = (
        DEFAULTS_PREFIX,
        AUTO_COMPACT_PREFIX,
        CONSTRAINT_CHECK.full_name,
        DATA_COLUMNS.full_name,
        CONFLICT_DETECTION,
    )
    return {name: text for name, text in sorted(settings.items()) if name.startswith(prefixes)}


def parse_settings(text: str, zone: tzinfo) -> dict[str, str]:
    """The settings in the text of the option.

    Raises
    ------
    ValueError
        It is no JSON object of texts.
    """
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise ValueError("it is a JSON object from names of settings to texts")
    return settings


def is_default(name: str) -> bool:
    """Whether a setting gives new tables a property that there is, by its exact name, as delta-spark looks it up."""
    if not name.startswith(DEFAULTS_PREFIX):
        return False
    key = PREFIX + name[len(DEFAULTS_PREFIX) :]
    return key.startswith(FEATURE_PREFIX) or (key in PROPERTIES and PROPERTIES[key].settable)


def default_properties(settings: Mapping[str, str]) -> dict[str, str]:
    """The properties that settings of a session give to new tables: `properties.defaults.<name>` is `delta.<name>`."""
    return {
        PREFIX + name[len(DEFAULTS_PREFIX) :]: text for name, text in settings.items() if is_default(name)
    }
