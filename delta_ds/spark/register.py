"""`register(spark)`: prepare a session for `pydelta` and report what is active."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.events.spark import UNREGISTER_NATIVE_SKIPPED
from delta_ds.kernel.base.card import Card, Shown, table_of
from delta_ds.records import dataclass, field
from delta_ds.spark import session
from delta_ds.spark.base.kinds.sealed import register_source
from delta_ds.spark.base.kinds.session_facts import session_settings, without_effect
from delta_ds.spark.base.query_needs import PUSHDOWN_CONF, plans_each_scan
from delta_ds.spark.base.table_names import FORMAT
from delta_ds.spark.engines.arguments import public
from delta_ds.spark.engines.portable.source import DeltaSource, PushdownSource
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.engine import CLASSIC, CONNECT
from delta_ds.spark.session.writes.write import insert_rows, use_replacement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.transaction.write.intent import WriteIntent


# On these nothing has to be tried.
_TESTED = ("4.1.", "4.2.", "4.3.")
_TRIAL_ROWS = 5
# What the user had set, in the sessions where `register` allowed it; None: nothing.
_set_before: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()
# What clients have on a server that is this process, registered with them.
_behind: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether a feature is active in a session, with the reason; true if it is.

    Attributes
    ----------
    active
        Whether the feature is active.
    reason
        What is active, or why it is not and what to do.

    Examples
    --------
    >>> print(Capability(False, "spark.pydelta.nativeScan is false"))
    off: spark.pydelta.nativeScan is false
    """

    active: bool
    reason: str

    def __bool__(self) -> bool:
        return self.active

    def __str__(self) -> str:
        return f"{'on' if self.active else 'off'}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Registration(Shown):
    """The result of `register`: which features are active, and why others are not.

    Attributes
    ----------
    format
        The name for `spark.read.format(...)`.
    session
        `classic` or `connect`.
    spark_version
        Of the session, which for Spark Connect is the server's.
    source
        The data source itself.
    pushdown
        The data source skips files by the filters of a query; the native scan always does.
    session_integration
        `spark.read` and `df.write` know all save modes, `partitionBy`, `clusterBy` and tables by their path.
    native_scan, native_write
        Files are read and written by Spark itself.
    log_aggregates
        `count(*)`, `min` and `max` are answered from the log if it knows them.
    sql_function
        `SELECT ... FROM pydelta('/path')`.
    sql
        Delta's statements, tables in the session catalog, and the name `delta`.
    workers
        Python workers can run this package, as far as the driver's machine shows. If off, everything that needs
        them fails: change feeds and streams, and on Spark Connect everything.
    settings_without_effect
        Settings of delta-spark in the session that have no effect here, with the reason, by name; see
        `docs/settings.md`.

    Examples
    --------
    >>> import delta_ds
    >>> active = delta_ds.register(spark)
    >>> active.session, bool(active.native_scan), active.native_scan.reason
    ('classic', True, "Spark's own Parquet reader and writer")
    """

    format: str
    session: str
    spark_version: str
    source: Capability
    pushdown: Capability
    session_integration: Capability
    native_scan: Capability
    native_write: Capability
    log_aggregates: Capability
    sql_function: Capability
    sql: Capability
    workers: Capability
    settings_without_effect: Mapping[str, str] = field(default_factory=dict)

    def _card(self) -> Card:
        from dataclasses import fields

        values = {f.name.replace("_", " "): getattr(self, f.name) for f in fields(self)}
        found = [(name, value) for name, value in values.items() if isinstance(value, Capability)]
        active = table_of(
            ("", "", "why"), found, lambda each: (each[0], "on" if each[1] else "off", each[1].reason)
        )
        ignored = table_of(
            ("setting without effect", "why"), list(self.settings_without_effect.items()), lambda each: each
        )
        title = f"{self.format} on Spark {self.spark_version} ({self.session})"
        return Card(title, (), (active, ignored) if ignored.rows else (active,))

    def __str__(self) -> str:
        from dataclasses import fields

        head = f"{self.format} on Spark {self.spark_version} ({self.session})"
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        lines = [f"  {name}: {value}" for name, value in values.items() if isinstance(value, Capability)]
        lines += [f"  without effect: {name}: {why}" for name, why in self.settings_without_effect.items()]
        return "\n".join([head, *lines])


@public
def register(spark: SparkSession, *, pushdown: bool | None = None) -> Registration:
    """Register the data source in a session; repeated calls are harmless.

    Without it, sessions that find the package on the Python path know the data source, but nothing more.

    Parameters
    ----------
    spark
        A classic session or one of Spark Connect.
    pushdown
        Whether filters of a query skip files. None: if Spark does it safely. True: in any Spark; up to
        4.3 this loses rows as soon as one DataFrame or view is scanned twice with different filters, so
        only for sessions that never do so. False: never.

    Returns
    -------
    Registration
        Which features are active, and why others are not.

    Examples
    --------
    >>> import delta_ds
    >>> print(delta_ds.register(spark))
    pydelta on Spark 4... (classic)
      source: on: spark.read.format('pydelta')
      ...
    """
    engine = engine_of(spark)
    if engine.kind == CONNECT:
        _register_behind(spark, pushdown)
    chosen = _pushdown_capability(pushdown)
    source = PushdownSource if chosen and pushdown else DeltaSource
    register_source(spark, source)
    if chosen:
        _allow_pushdown(spark)
    session.install(spark)
    use_replacement(_replace_matches)
    if engine.kind == CONNECT:
        _install_client()
    native = _attempt(lambda: _native(spark))
    return Registration(
        format=FORMAT,
        session=engine.kind,
        spark_version=spark.version,
        source=Capability(True, f"spark.read.format({FORMAT!r})"),
        pushdown=chosen,
        session_integration=Capability(True, "all save modes, partitionBy, clusterBy, tables by their path"),
        native_scan=_unless_off(spark, session.NATIVE_SCAN_CONF, native),
        native_write=_unless_off(spark, session.NATIVE_WRITE_CONF, native),
        log_aggregates=_attempt(lambda: _aggregates(spark)) if native else native,
        sql_function=_attempt(lambda: _function(spark)) if native else native,
        sql=_sql_of_client(spark) if engine.kind == CONNECT else _sql_of_jvm(spark, native),
        workers=Capability(*engine.jobs.workers()),
        settings_without_effect=without_effect(session_settings(spark)),
    )


@public
def unregister(spark: SparkSession) -> None:
    """Undo what `register` did to a session; harmless if it did nothing.

    The data source stays registered, because Spark cannot remove one.

    Parameters
    ----------
    spark
        The session.

    Examples
    --------
    >>> import delta_ds
    >>> delta_ds.unregister(spark)
    >>> spark.read.format("pydelta").load("/data/orders").count()
    4
    >>> active = delta_ds.register(spark)
    """
    session.uninstall(spark)
    if engine_of(spark).kind == CONNECT:
        _uninstall_client()
    behind = _behind.pop(spark, None)
    if behind is not None:
        unregister(behind)
    if spark in _set_before:
        # The source that takes filters fails where Spark does not allow it.
        register_source(spark, DeltaSource)
        before = _set_before.pop(spark)
        if before is None:
            spark.conf.unset(PUSHDOWN_CONF)
        else:
            spark.conf.set(PUSHDOWN_CONF, before)
    if engine_of(spark).kind == CLASSIC:
        _uninstall_native(spark)


def _uninstall_native(spark: SparkSession) -> None:
    from delta_ds.spark.engines.classic import function, log_aggregates
    from delta_ds.spark.engines.classic.jvm import NotNative
    from delta_ds.spark.sql.install import uninstall

    try:
        uninstall(spark)
        log_aggregates.uninstall(spark)
        function.unregister_function(spark)
    except NotNative as why:
        # Then there was nothing to take out.
        UNREGISTER_NATIVE_SKIPPED.log(reason=why.reason)


def _replace_matches(
    source: DataFrame,
    intent: WriteIntent,
    aligned: Callable[[DataFrame], DataFrame],
    store: Mapping[str, str],
    *,
    by_place: bool = False,
) -> None:
    """See `Replacement`; commands are imported where one runs."""
    from delta_ds.spark.commands.replace import run_replacement

    run_replacement(source, intent, aligned, store, by_place=by_place)


def _register_behind(spark: SparkSession, pushdown: bool | None) -> None:
    """Register the session that a client's is to its server, where that is this process: nobody else can."""
    if "pyspark.core.context" not in sys.modules:
        return
    from delta_ds.spark.session.catalog.classes import session_behind

    # So that the server has made it.
    _ = spark.version
    behind = session_behind(spark)
    if behind is not None:
        register(behind, pushdown=pushdown)
        _behind[spark] = behind


def _install_client() -> None:
    from delta_ds.spark.sql import client

    client.install()


def _uninstall_client() -> None:
    from delta_ds.spark.sql import client

    client.uninstall()


def _allow_pushdown(spark: SparkSession) -> None:
    if spark.conf.get(PUSHDOWN_CONF, "false") != "true":
        _set_before[spark] = spark.conf.getAll.get(PUSHDOWN_CONF)
        spark.conf.set(PUSHDOWN_CONF, "true")


def _attempt(install: Callable[[], str]) -> Capability:
    from delta_ds.spark.engines.classic.jvm import NotNative

    try:
        return Capability(True, install())
    except NotNative as why:
        return Capability(False, why.reason)


def _native(spark: SparkSession) -> str:
    """How the native path is known to work: by a tested version of Spark, or by a trial."""
    from delta_ds.spark.engines.classic.jvm import Jvm

    Jvm.of(spark)
    if spark.version.startswith(_TESTED):
        return "Spark's own Parquet reader and writer"
    _try_native(spark)
    return f"Spark's own Parquet reader and writer, tried out on Spark {spark.version}, which is not tested"


def _try_native(spark: SparkSession) -> None:
    """Write a small table and read it back.

    Raises
    ------
    NotNative
        That fails, or gives other rows.
    """
    from delta_ds.spark.engines.classic.jvm import NotNative
    from delta_ds.spark.engines.classic.load import load
    from delta_ds.spark.engines.classic.writer import save

    with tempfile.TemporaryDirectory(prefix="delta-ds-probe-") as folder:
        try:
            rows = spark.range(_TRIAL_ROWS).selectExpr("id", "cast(id % 2 as string) as p")
            save(rows, {"path": folder, "partitionBy": "p"}, overwrite=False)
            read = load(spark, {"path": folder}, insert=insert_rows)
            found = read.where("upper(p) = '1' or id = 4").orderBy("id").collect()
        except NotNative:
            raise
        except Exception as error:
            text = str(error).strip().partition("\n")[0]
            raise NotNative(f"on Spark {spark.version}, which is not tested, it fails: {text}") from error
    if [tuple(row) for row in found] != [(1, "1"), (3, "1"), (4, "0")]:
        raise NotNative(f"on Spark {spark.version}, which is not tested, it reads wrong rows")


def _aggregates(spark: SparkSession) -> str:
    from delta_ds.spark.engines.classic import log_aggregates

    log_aggregates.install(spark)
    return "count(*), min and max of what the log knows exactly"


def _function(spark: SparkSession) -> str:
    from delta_ds.spark.engines.classic import function

    function.register_function(spark, insert_rows)
    return f"SELECT ... FROM {function.NAME}('/path', 'versionAsOf', 3)"


def _sql(spark: SparkSession) -> str:
    from delta_ds.spark.sql.install import install

    installed = install(spark)
    names = "delta and pydelta" if not installed.delta else f"pydelta ({installed.delta})"
    tables = "tables in the session catalog" if not installed.catalog else installed.catalog
    return f"Delta's statements; {tables}; sources {names}"


def _sql_of_jvm(spark: SparkSession, native: Capability) -> Capability:
    return _attempt(lambda: _sql(spark)) if native else native


def _sql_of_client(spark: SparkSession) -> Capability:
    from delta_ds.spark.sql.client import server_knows_delta

    if server_knows_delta(spark):
        return Capability(True, "the server's: all of its sessions have a catalog for Delta tables")
    return Capability(
        True, "Delta's statements, rows and queries of tables by their path; names need the server"
    )


def _unless_off(spark: SparkSession, conf: str, native: Capability) -> Capability:
    return Capability(False, f"{conf} is false") if native and session.is_off(spark, conf) else native


def _pushdown_capability(wanted: bool | None) -> Capability:
    if wanted is False:
        return Capability(False, "as asked for")
    if plans_each_scan():
        return Capability(True, "files are skipped by the filters of a query")
    if wanted:
        return Capability(True, "as asked for; every DataFrame must be scanned with one filter only")
    return Capability(
        False,
        "this Spark applies the filters of one scan of a DataFrame to its other scans too, which loses rows; "
        "register(spark, pushdown=True) if no DataFrame or view is scanned twice",
    )
