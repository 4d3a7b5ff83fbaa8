"""Put SQL and names into a classic session, and take them out."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.kernel.format.options.parsing import STORAGE_PREFIX
from delta_ds.kernel.storage.store_options import name_patterns
from delta_ds.records import dataclass
from delta_ds.spark.base.session_conf import CATALOG_CLASS, CATALOG_CONF, WRAP_CATALOG_CONF, is_set
from delta_ds.spark.base.sql_grammar.grammar import HEADS
from delta_ds.spark.base.table_names import DELTA, claim_delta, our_names
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.classes import is_published, publish, remember, static
from delta_ds.spark.session.catalog.named import NAMED_CLASS, SPARK_PREFIX, named_catalogs
from delta_ds.spark.session.catalog.updates import forget
from delta_ds.spark.sql.answers import Answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.conf import RuntimeConfig

# --- put catalogs beside the session's into a classic session, and take them out

# What the settings of the catalogs were before, by session; None: nothing.
_before: WeakKeyDictionary[SparkSession, dict[str, str | None]] = WeakKeyDictionary()


def install_catalogs(spark: SparkSession) -> list[str]:
    """Make the catalogs known that settings name; their names. Sessions made later are registered themselves.

    Raises
    ------
    InvalidOptionError
        A setting does not fit; nothing was made known.
    """
    catalogs = named_catalogs(spark)
    before = _before.setdefault(spark, {})
    install = static(Jvm.of(spark), "Install")
    for name in catalogs:
        setting = f"{SPARK_PREFIX}{name}"
        if setting not in before:
            before[setting] = spark.conf.get(setting, None)
            spark.conf.set(setting, NAMED_CLASS)
        install.bindCatalog(spark._jsparkSession, name)
    return sorted(catalogs)


def uninstall_catalogs(spark: SparkSession) -> None:
    """Set the catalogs back to what they were."""
    for setting, text in _before.pop(spark, {}).items():
        if text is None:
            spark.conf.unset(setting)
        else:
            spark.conf.set(setting, text)
        static(Jvm.of(spark), "Install").forgetCatalog(
            spark._jsparkSession, setting.removeprefix(SPARK_PREFIX)
        )


# --- put SQL and names into a classic session, and take them out

_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_BEHIND_CONF = f"{CATALOG_CONF}.behind"
# What the setting of the catalog was before, in a session and for those made later; None: nothing.
_catalog_before: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()
_inherited_before: WeakKeyDictionary[object, str | None] = WeakKeyDictionary()
# The Python side, by gateway: the JVM keeps no strong hold on it.
_answers: WeakKeyDictionary[object, Answers] = WeakKeyDictionary()


@dataclass(frozen=True)
class Installed:
    """What was put into a session: empty texts say that it was, others why not."""

    catalog: str
    delta: str


def install(spark: SparkSession) -> Installed:
    """Put parser, rules and catalog into a session and those made from it; doing so again is harmless.

    Raises
    ------
    NotNative
        A session of Spark Connect, or a Spark without what is needed.
    """
    jvm = Jvm.of(spark)
    taken = _other_delta(jvm)
    publish(jvm, provider=not taken)
    claim_delta(not taken)
    remember(spark, static(jvm, "Python").identity(spark._jsparkSession))
    answers = _answers.setdefault(jvm.gateway, Answers(spark.sparkContext))
    answers.serve(spark.sparkContext)
    static(jvm, "Python").set(answers)
    static(jvm, "Parser").heads(HEADS)
    static(jvm, "Secrets").names(*name_patterns(STORAGE_PREFIX))
    names = jvm.gateway.new_array(jvm.jvm.java.lang.String, len(our_names()))
    for number, name in enumerate(our_names()):
        names[number] = name
    static(jvm, "Catalog").providers(names)
    static(jvm, "Install").into(spark._jsparkSession)
    install_catalogs(spark)
    return Installed(_install_catalog(spark), taken)


def uninstall(spark: SparkSession) -> None:
    """Take everything out of a session; the classes stay in the JVM, and do nothing."""
    jvm = Jvm.of(spark)
    if not is_published(jvm):
        return
    static(jvm, "Install").outOf(spark._jsparkSession)
    uninstall_catalogs(spark)
    forget(spark)
    context = spark.sparkContext
    if context not in _inherited_before:
        return
    if spark.conf.get(CATALOG_CONF, "") == CATALOG_CLASS:
        _restore_catalog(spark.conf, _catalog_before.pop(spark, _inherited_before[context]))
        static(jvm, "Install").forgetCatalog(spark._jsparkSession, "spark_catalog")
    if not static(jvm, "Install").forNewSessions(spark._jsparkSession):
        _restore_catalog(_ContextConf(spark), _inherited_before.pop(context))


def _install_catalog(spark: SparkSession) -> str:
    found = spark.conf.get(CATALOG_CONF, "") or ""
    if found == CATALOG_CLASS:
        return ""
    settings = {CATALOG_CONF: CATALOG_CLASS}
    if found not in ("", "builtin", _DELTA_CATALOG):
        if not is_set(spark, WRAP_CATALOG_CONF, False):
            return (
                f"{CATALOG_CONF} is {found}, which is left alone; with {WRAP_CATALOG_CONF}=true tables of this package "
                "are known by names, and all others to that catalog"
            )
        settings[_BEHIND_CONF] = found
    _catalog_before[spark] = found or None
    # Sessions that Spark makes later begin with the context's settings.
    inherited = _ContextConf(spark)
    _inherited_before.setdefault(spark.sparkContext, inherited.get(CATALOG_CONF))
    for name, text in settings.items():
        spark.conf.set(name, text)
        inherited.set(name, text)
    static(Jvm.of(spark), "Install").forgetCatalog(spark._jsparkSession, "spark_catalog")
    return ""


def _restore_catalog(conf: RuntimeConfig | _ContextConf, before: str | None) -> None:
    conf.unset(_BEHIND_CONF)
    if before is None:
        conf.unset(CATALOG_CONF)
    else:
        conf.set(CATALOG_CONF, before)


class _ContextConf:
    """The settings that new sessions begin with, and that RESET goes back to; used as `RuntimeConfig` is."""

    def __init__(self, spark: SparkSession) -> None:
        self._conf = spark.sparkContext._jsc.sc().conf()
        # What the statement RESET goes back to: a copy that Spark makes of the context's settings.
        self._copy = spark._jsparkSession.sharedState().conf()

    def get(self, name: str) -> str | None:
        found: str | None = self._conf.get(name, None)
        return found

    def set(self, name: str, value: str) -> None:
        for conf in (self._conf, self._copy):
            conf.set(name, value)

    def unset(self, name: str) -> None:
        for conf in (self._conf, self._copy):
            conf.remove(name)


def _other_delta(jvm: Jvm) -> str:
    """Why the name `delta` is another source's; empty where it is not."""
    from py4j.protocol import Py4JJavaError

    try:
        found = jvm.jvm.org.apache.spark.util.Utils.classForName(_DELTA_EXTENSION, False, False)
    except Py4JJavaError:
        return ""
    return f"{found.getName()} is on the class path: {DELTA} is delta-spark's"
