"""Where the commits of a session are made, and by what: its application, what the session and the process say.

Source: delta-spark, `CommitInfo` (what it takes from Databricks); Spark, "Monitoring and Instrumentation".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds._version import __version__
from delta_ds.conditions.options import INVALID_CONF_VALUE
from delta_ds.kernel.format.options import parsing as values
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
from delta_ds.spark.base.kinds.settings import all_settings, texts_of
from delta_ds.spark.base.session_conf import ORIGIN_CONF, USER_NAME_CONF

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject

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
        return values.boolean(text, values.zone_by_name("UTC"))
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
