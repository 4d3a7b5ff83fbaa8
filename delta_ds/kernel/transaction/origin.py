"""Where commits are made: by which application, job, notebook and user, as far as that is known.

Nothing is asked of anybody: what the process, its environment or its Spark session says is told, and nothing else.

Source: delta-spark, `CommitInfo`, `JobInfo` and `NotebookInfo` (names of fields).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from delta_ds.kernel.base.environment import ORIGIN, USER_NAME
from delta_ds.kernel.base.json_text import to_json
from delta_ds.kernel.format.options.settings import ORIGIN as CARRIED
from delta_ds.records import dataclass, field, replace
from delta_ds.redaction import safe_addresses

_LONGEST = 1000
_OFF = ("off", "false", "no", "0")
_NOTEBOOK = "JPY_SESSION_NAME"
_NOTEBOOK_OF_VS_CODE = "__vsc_ipynb_file__"

# What runs jobs: the fields of `job` by the variables that it sets, the first of which tells that it does.
JOB_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "Airflow": {
        "AIRFLOW_CTX_DAG_ID": "jobId",
        "AIRFLOW_CTX_TASK_ID": "jobName",
        "AIRFLOW_CTX_DAG_RUN_ID": "jobRunId",
    },
    "dbt Cloud": {
        "DBT_CLOUD_JOB_ID": "jobId",
        "DBT_CLOUD_RUN_ID": "jobRunId",
        "DBT_CLOUD_RUN_REASON_CATEGORY": "triggerType",
    },
    "Dagster": {"DAGSTER_RUN_JOB_NAME": "jobName", "DAGSTER_RUN_ID": "jobRunId"},
    "Prefect": {"PREFECT__FLOW_RUN_ID": "jobRunId"},
}


@dataclass(frozen=True, slots=True)
class Origin:
    """What a commit says of its maker; empty for what is not known.

    Attributes
    ----------
    user_name
        As somebody has said it: none is asked of the machine.
    job
        `jobId`, `jobName`, `jobRunId`, `runId`, `triggerType`.
    notebook
        `notebookId`.
    cluster_id
        Of Databricks.
    application
        `id`, `name`, `url` of a Spark application.
    """

    user_name: str | None = None
    job: Mapping[str, str] = field(default_factory=dict)
    notebook: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    application: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """By the names of `commitInfo`; None for what is not known."""
        return {
            "userName": _cut(self.user_name),
            "job": _all_cut(self.job),
            "notebook": _all_cut(self.notebook),
            "clusterId": _cut(self.cluster_id),
            "application": _all_cut(self.application),
        }

    def to_text(self) -> str:
        """As a text from which `from_text` makes it again."""
        return to_json({name: value for name, value in self.fields().items() if value is not None})


NOBODY = Origin()


def from_text(text: str) -> Origin:
    """What `Origin.to_text` gave."""
    parts = json.loads(text)
    return Origin(
        parts.get("userName"),
        parts.get("job") or {},
        parts.get("notebook") or {},
        parts.get("clusterId"),
        parts.get("application") or {},
    )


def _cut(text: str | None) -> str | None:
    return safe_addresses(text)[:_LONGEST] if text else None


def _all_cut(values: Mapping[str, str]) -> dict[str, str] | None:
    return {name: safe_addresses(text)[:_LONGEST] for name, text in values.items() if text} or None


# --- which one holds

_given: ContextVar[Callable[[], Origin] | None] = ContextVar("delta_ds_origin", default=None)
_of_driver: list[Callable[[], Origin | None]] = []


def ask_driver(provider: Callable[[], Origin | None]) -> None:
    """Ask this where no session has said anything; None: the process is no driver."""
    _of_driver[:] = [provider]


@contextmanager
def given(origin: Callable[[], Origin]) -> Iterator[None]:
    """Commits within the block are of this origin; it is asked for by each commit."""
    token = _given.set(origin)
    try:
        yield
    finally:
        _given.reset(token)


@contextmanager
def carried(settings: Mapping[str, str]) -> Iterator[None]:
    """Commits within the block are of the origin that travels with a session's settings, where one does."""
    text = settings.get(CARRIED)
    if text is None:
        yield
        return
    with given(lambda: from_text(text)):
        yield


def current() -> Origin:
    """The origin of a commit that is made here and now."""
    asked = _given.get()
    if asked is not None:
        return asked()
    for provider in _of_driver:
        origin = provider()
        if origin is not None:
            return origin
    return of_process()


# --- what a process knows


def of_process(variables: Mapping[str, str] | None = None) -> Origin:
    """What the environment says: who runs the job, and which notebook this is.

    Parameters
    ----------
    variables
        Of the environment; None: those of this process.
    """
    environment = os.environ if variables is None else variables
    if not is_wanted(environment):
        return NOBODY
    notebook = environment.get(_NOTEBOOK) or _of_vs_code()
    return Origin(
        user_name=environment.get(USER_NAME.name) or None,
        job=_job(environment),
        notebook={"notebookId": notebook} if notebook else {},
    )


def is_wanted(variables: Mapping[str, str] | None = None) -> bool:
    """Whether the environment lets commits say where they are made; arguments as of `of_process`."""
    environment = os.environ if variables is None else variables
    return environment.get(ORIGIN.name, ORIGIN.default).strip().lower() not in _OFF


def _job(variables: Mapping[str, str]) -> dict[str, str]:
    for names in JOB_VARIABLES.values():
        if variables.get(next(iter(names))):
            return {field: variables[name] for name, field in names.items() if variables.get(name)}
    return {}


def _of_vs_code() -> str | None:
    """The notebook that VS Code runs; what imports IPython has imported it already."""
    # Another thread may be about to import it, so it may be there without anything in it.
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_shell() if get_shell is not None else None
    path = getattr(shell, "user_ns", {}).get(_NOTEBOOK_OF_VS_CODE)
    return path if isinstance(path, str) else None


def of_application(origin: Origin, app_id: str | None, name: str | None, url: str | None) -> Origin:
    """An origin in a Spark application: where nobody else runs the job, the application is the job.

    Parameters
    ----------
    origin
        What else is known.
    app_id, name, url
        Of the application; the address is that of its history, or of its page while it runs.
    """
    texts = {"id": app_id, "name": name, "url": url}
    application = {key: text for key, text in texts.items() if text}
    job = dict(origin.job)
    if app_id:
        if not job and name:
            job["jobName"] = name
        job.setdefault("runId", app_id)
    return replace(origin, application=application, job=job)
