"""What a session says, read once where a call comes in: see the kernel's `SessionFacts`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.kernel.format.options.read import ReadOptions, parse_read_options
from delta_ds.kernel.format.options.settings import (
    ANSI,
    CASE_SENSITIVE,
    CODEC,
    ORIGIN,
    OVERWRITE_MODE,
    RECORDS_PER_FILE,
    SETTINGS_OPTION,
    STORE_ASSIGNMENT,
    TIME_ZONE,
    UNKNOWN_OPTIONS,
    SessionFacts,
)
from delta_ds.spark.base.kinds.origin import origin_of
from delta_ds.spark.base.kinds.settings import all_settings, session_settings, with_session_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_OF_SPARK = (
    TIME_ZONE, ANSI, STORE_ASSIGNMENT, CASE_SENSITIVE, OVERWRITE_MODE, CODEC, RECORDS_PER_FILE, UNKNOWN_OPTIONS,
)  # fmt: skip
# What holds without a setting is the machine's, or the environment's: the session has to be asked.
_WITH_OTHER_DEFAULTS = (TIME_ZONE, ANSI)

_defaults: WeakKeyDictionary[object, dict[str, str]] = WeakKeyDictionary()


def facts_of(spark: SparkSession) -> SessionFacts:
    """The facts of a session, as it is now; settings of delta-spark without effect are told of."""
    found = all_settings(spark)
    facts = session_settings(spark, found)
    facts |= {name: text for name in _OF_SPARK if (text := found.get(name)) is not None}
    for name in _WITH_OTHER_DEFAULTS:
        if name not in facts:
            facts[name] = _default(spark, name)
    facts[ORIGIN] = origin_of(spark, found).to_text()
    return SessionFacts(facts)


def with_facts_of_reads(spark: SparkSession | None, options: Mapping[str, str]) -> dict[str, str]:
    """Options of a read with what the session says of reads, for processes that have no session.

    Local times in options and partition values are those of the session's time zone, which nobody there can ask for.
    Without a session there is nothing to say.
    """
    if spark is None or any(name.lower() == SETTINGS_OPTION.lower() for name in options):
        return dict(options)
    facts = SessionFacts({TIME_ZONE: str(spark.conf.get(TIME_ZONE))})
    unknown = spark.conf.get(UNKNOWN_OPTIONS, None)
    if unknown is not None:
        facts = facts.with_setting(UNKNOWN_OPTIONS, unknown)
    return {**options, SETTINGS_OPTION: facts.text()}


def parse_options_of_read(spark: SparkSession | None, options: Mapping[str, str]) -> ReadOptions:
    """The options of a read, with what the session says of reads and of the store; errors: `parse_read_options`."""
    return parse_read_options(with_session_settings(spark, with_facts_of_reads(spark, options)))


def _default(spark: SparkSession, name: str) -> str:
    """What holds in a session without a setting, which does not change."""
    known = _defaults.setdefault(spark, {})
    if name not in known:
        known[name] = str(spark.conf.get(name))
    return known[name]
