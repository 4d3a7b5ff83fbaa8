"""What a session says, read once where a call comes in: its facts, its settings of Delta and of the store, its origin.

A setting of delta-spark without effect is told of. The settings: `kernel/format/options/settings.py`,
`ignored_settings.py`; what is made of them: the kernel's `SessionFacts`. The origin: where the commits of a session are
made, and by what, as its application, the session and the process say.

Source: delta-spark, `CommitInfo` (what it takes from Databricks); Spark, "Monitoring and Instrumentation".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_ds._version import __version__
from delta_ds.conditions.options import INVALID_CONF_VALUE
from delta_ds.events.spark import SETTING_WITHOUT_EFFECT
from delta_ds.kernel.base.value_types import parse_boolean
from delta_ds.kernel.format.options.ignored_settings import MACHINERY, SETTINGS
from delta_ds.kernel.format.options.parsing import is_of_store, storage_value, store_name
from delta_ds.kernel.format.options.read import ReadOptions, parse_read_options
from delta_ds.kernel.format.options.settings import (
    ANSI,
    CASE_SENSITIVE,
    CODEC,
    CONFLICT_DETECTION,
    DEFAULTS_PREFIX,
    ORIGIN,
    OVERWRITE_MODE,
    PROPERTY_DEFAULTS,
    RECORDS_PER_FILE,
    SETTING_PREFIX,
    SETTINGS_OPTION,
    STORE_ASSIGNMENT,
    TIME_ZONE,
    TXN_VERSION,
    UNKNOWN_OPTIONS,
    SessionFacts,
    is_default,
)
from delta_ds.kernel.format.properties import PREFIX, PROPERTIES, PropertyRules
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.kernel.transaction.origin import (
    NOBODY,
    Origin,
    ask_driver,
    given,
    is_wanted,
    of_application,
    of_process,
)
from delta_ds.records import replace
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.session_conf import ORIGIN_CONF, USER_NAME_CONF
from delta_ds.spark.base.table_names import path_option

if TYPE_CHECKING:
    from pyspark import SparkContext
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


def property_rules(spark: SparkSession | None) -> PropertyRules:
    """What a session lets users set of table properties; raises as `SessionFacts.property_rules`."""
    return SessionFacts(session_settings(spark)).property_rules


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
    import difflib

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


# Where Hadoop's defaults come from; they say nothing about what the user wants.
_DEFAULTS = "-default.xml"
# Where Hadoop's key stores are named; S3A looks into its own first.
_KEY_STORES = ("fs.s3a.security.credential.provider.path", "hadoop.security.credential.provider.path")


def with_session_settings(spark: SparkSession | None, options: Mapping[str, str]) -> dict[str, str]:
    """Options with what the session says of the store now.

    What is set by `spark.conf.set`, on `hadoopConfiguration` or for the application counts, and is asked for each time:
    credentials change. Options that are given win: each over its own setting, and credentials, in whichever words, over
    all credentials of the session.

    Parameters
    ----------
    spark
        The session; None, or one of Spark Connect, has nothing to say here: the server has its own.
    options
        As given to a reader, a writer or `DeltaTable.forPath`, `path` among them. Of a table on a local disk nothing
        is asked.

    Raises
    ------
    InvalidOptionError
        The session says of the store what has no counterpart, and would let Spark ask as another user or write other
        bytes.
    """
    path = path_option(options) or ""
    remote = has_scheme(path) and not path.lower().startswith("file:")
    if spark is None or is_connect(spark) or not remote:
        return dict(options)
    from delta_ds.kernel.storage.settings.translate import names_in_key_stores, settings_of_session

    conf = spark._jsparkSession.sessionState().newHadoopConf()
    given = {
        store_name(name): storage_value(name, text) for name, text in options.items() if is_of_store(name)
    }
    address = parse_address(path)
    properties = _properties(conf, spark._jvm)
    properties.update(_from_key_stores(conf, spark._jvm, properties, names_in_key_stores(address)))
    found = settings_of_session(properties, address, given, lambda name: _is_default(conf, name))
    return {**found, **options}


def _properties(conf: JavaObject, jvm: Any) -> dict[str, str]:
    """All properties in one message; Hadoop's own way to JSON leaves out secrets."""
    text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(conf.getPropsWithPrefix(""))
    return {str(name): str(value) for name, value in json.loads(text).items()}


def _from_key_stores(
    conf: JavaObject, jvm: Any, properties: Mapping[str, str], names: Sequence[str]
) -> dict[str, str]:
    """Secrets that Hadoop has in key stores, and not as settings."""
    stores = [properties[name] for name in _KEY_STORES if properties.get(name)]
    if not stores:
        return {}
    looked_in = jvm.org.apache.hadoop.conf.Configuration(conf)
    looked_in.set(_KEY_STORES[-1], ",".join(stores))
    secrets = {name: looked_in.getPassword(name) for name in names if name not in properties}
    return {name: "".join(secret) for name, secret in secrets.items() if secret is not None}


def _is_default(conf: JavaObject, name: str) -> bool:
    sources = conf.getPropertySources(name)
    return sources is not None and len(sources) > 0 and str(sources[len(sources) - 1]).endswith(_DEFAULTS)


_OF_SPARK = (
    TIME_ZONE, ANSI, STORE_ASSIGNMENT, CASE_SENSITIVE, OVERWRITE_MODE, CODEC, RECORDS_PER_FILE, UNKNOWN_OPTIONS,
)  # fmt: skip
# What holds without a setting is the machine's, or the environment's: the session has to be asked.
_WITH_OTHER_DEFAULTS = (TIME_ZONE, ANSI)

_defaults: WeakKeyDictionary[object, dict[str, str]] = WeakKeyDictionary()


def facts_of(spark: SparkSession, settings: Mapping[str, str | None] | None = None) -> SessionFacts:
    """The facts of a session, as it is now; settings of delta-spark without effect are told of.

    Parameters
    ----------
    settings
        What `all_settings` says now, where that was asked for already.
    """
    found = all_settings(spark) if settings is None else settings
    facts = session_settings(spark, found)
    facts |= {name: text for name in _OF_SPARK if (text := found.get(name)) is not None}
    for name in _WITH_OTHER_DEFAULTS:
        if name not in facts:
            facts[name] = _default(spark, name)
    facts[ORIGIN] = origin_of(spark, found).to_text()
    return SessionFacts(facts)


def use_txn(spark: SparkSession, facts: SessionFacts) -> None:
    """Let a session that asks for it forget the version of its transaction, which a write or command has counted as.

    Otherwise the next one, for which nobody sets a version, would count as done already, and write nothing.
    """
    if facts.txn_is_used_once:
        spark.conf.unset(TXN_VERSION.full_name)


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


# Of Databricks, by the fields of `job`.
_JOB_SETTINGS = {"spark.databricks.job.id": "jobId", "spark.databricks.job.runId": "jobRunId"}
_NOTEBOOK_SETTING = "spark.databricks.notebook.path"
_CLUSTER_SETTING = "spark.databricks.clusterUsageTags.clusterId"
_HISTORY_SERVER = "spark.yarn.historyServer.address"

# Id, name and page of the applications of this process, which do not change.
_applications: WeakKeyDictionary[SparkContext, tuple[str, str | None, str | None]] = WeakKeyDictionary()


def engine_info() -> str:
    """The `engineInfo` of a commit: the version of Spark, and of this package."""
    import pyspark

    return f"Apache-Spark/{pyspark.__version__} delta_ds/{__version__}"


def origin_of(spark: SparkSession, settings: Mapping[str, str | None] | None = None) -> Origin:
    """What commits of a session say of where they are made.

    Parameters
    ----------
    settings
        All that the session has, where they were asked for already.

    Raises
    ------
    InvalidOptionError
        `spark.pydelta.commitInfo.origin` is neither `true` nor `false`.
    """
    if settings is None:
        settings = all_settings(spark)
    if is_connect(spark):
        # The application is the server's; the job and the notebook are those of the client.
        return _origin(settings, settings.get("spark.app.id"), settings.get("spark.app.name"), None)
    return _origin(settings, *_application(spark.sparkContext))


def of_session(spark: SparkSession) -> AbstractContextManager[None]:
    """Commits within the block are made by a session, which is asked where there is one."""
    return given(lambda: origin_of(spark))


def _of_driver() -> Origin | None:
    """Of the session that is active in the JVM of this process; None where there is no JVM, or none any more."""
    # Not of pyspark itself: where only its client is installed, it has none.
    core = sys.modules.get("pyspark.core.context")
    context = core.SparkContext._active_spark_context if core is not None else None
    if context is None or context._jvm is None:
        return None
    from py4j.protocol import Py4JNetworkError

    try:
        return _origin(_settings_of_active(context._jvm), *_application(context))
    except Py4JNetworkError:
        # A commit without Spark outlives the JVM.
        return None


def _settings_of_active(jvm: JavaObject) -> Mapping[str, str | None]:
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    for found in (sessions.getActiveSession(), sessions.getDefaultSession()):
        if found.isDefined():
            return texts_of(found.get().conf())
    return {}


ask_driver(_of_driver)


def _application(context: SparkContext) -> tuple[str, str | None, str | None]:
    known = _applications.get(context)
    if known is None:
        known = _applications[context] = (context.applicationId, context.appName, context.uiWebUrl)
    return known


def _origin(
    settings: Mapping[str, str | None], app_id: str | None, name: str | None, page: str | None
) -> Origin:
    if not (_is_wanted(settings) and is_wanted()):
        return NOBODY
    found = of_process()
    job = {field: text for key, field in _JOB_SETTINGS.items() if (text := settings.get(key))}
    notebook = settings.get(_NOTEBOOK_SETTING)
    found = replace(
        found,
        user_name=settings.get(USER_NAME_CONF) or found.user_name,
        job=job or found.job,
        notebook={"notebookId": notebook} if notebook else found.notebook,
        cluster_id=settings.get(_CLUSTER_SETTING),
    )
    return of_application(found, app_id, name, _address(settings.get(_HISTORY_SERVER), app_id, page))


def _is_wanted(settings: Mapping[str, str | None]) -> bool:
    text = settings.get(ORIGIN_CONF) or "true"
    try:
        return parse_boolean(text)
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=ORIGIN_CONF, value=text, reason=error) from error


def _address(server: str | None, app_id: str | None, page: str | None) -> str | None:
    """The history server's page of an application, which stays; else that of the application while it runs."""
    if not server or "${" in server or not app_id:
        found = page
    else:
        root = server if "://" in server else f"http://{server}"
        found = f"{root.rstrip('/')}/history/{app_id}"
    # Who may look at a page does not belong into a table.
    return None if found is None else re.sub(r"//[^/@]*@", "//", found)
