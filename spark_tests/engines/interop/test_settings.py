"""The settings of delta-spark: every one is known here, with its default."""

from __future__ import annotations

import pytest

from delta_ds.kernel.base.value_types import parse_size
from delta_ds.kernel.format.options.ignored_settings import MACHINERY, SETTINGS
from delta_ds.kernel.format.options.settings import (
    DEFAULTS_PREFIX,
    PROPERTY_DEFAULTS,
    SETTING_PREFIX,
    VACUUM_LOGGING,
)
from spark_tests.engines.interop.delta_spark import DeltaSpark

pytestmark = pytest.mark.interop


def _entries(delta_spark: DeltaSpark) -> dict[str, str]:
    """Names and defaults of all settings whose names begin as delta-spark's do."""
    session = delta_spark.session
    session.sql("SHOW DATABASES").collect()
    java = session.sparkContext._jvm.java.lang  # type: ignore[union-attr]

    def module(name: str) -> object:
        of = java.Class.forName(name + "$", True, java.Thread.currentThread().getContextClassLoader())
        return of.getField("MODULE$").get(None)

    module("org.apache.spark.sql.delta.sources.DeltaSQLConf")
    entries = module("org.apache.spark.sql.internal.SQLConf").getConfigEntries().iterator()  # type: ignore[attr-defined]
    found: dict[str, str] = {}
    while entries.hasNext():
        entry = entries.next()
        if entry.key().startswith(SETTING_PREFIX):
            found[entry.key()] = " ".join(entry.defaultValueString().split())
    return found


def _same(ours: str | None, theirs: str) -> bool:
    if ours is None:
        return theirs in ("", "<undefined>") or theirs.startswith("<value of")
    if ours.lower() == theirs.lower():
        return True
    try:
        return parse_size(ours) == parse_size(theirs.removesuffix("b"))
    except ValueError:
        return False


def test_every_setting_of_delta_spark_is_known_with_its_default(delta_spark: DeltaSpark) -> None:
    theirs = {
        name: text for name, text in _entries(delta_spark).items() if not name.startswith(DEFAULTS_PREFIX)
    }
    ours = {known.full_name: known.default for known in (*SETTINGS, *MACHINERY) if known != PROPERTY_DEFAULTS}
    assert len(theirs) > 300
    assert sorted(ours) == sorted(theirs)
    # Without the setting delta-spark's VACUUM chooses by the store whether it is told of in the history.
    different = [name for name, text in theirs.items() if not _same(ours[name], text)]
    assert different == [VACUUM_LOGGING.full_name]
