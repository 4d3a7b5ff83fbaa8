"""Commits say where they are made, as far as that is known, and nothing where that is not wanted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.base.environment import ORIGIN, USER_NAME
from delta_ds.kernel.format.options.settings import ORIGIN as CARRIED
from delta_ds.kernel.log.history import History, made_by
from delta_ds.kernel.transaction import origin
from delta_ds.kernel.transaction.origin import (
    JOB_VARIABLES,
    NOBODY,
    Origin,
    carried,
    from_text,
    given,
    of_application,
    of_process,
)

AIRFLOW = {
    "AIRFLOW_CTX_DAG_ID": "sales",
    "AIRFLOW_CTX_TASK_ID": "load",
    "AIRFLOW_CTX_DAG_RUN_ID": "manual__1",
    "AIRFLOW_CTX_DAG_EMAIL": "ann@example.com",
    "AIRFLOW_CONN_LAKE": "s3://key:secret@lake",
}
WHOLE = Origin("ann", {"jobId": "7"}, {"notebookId": "a.ipynb"}, "c-1", {"id": "app-1", "name": "nightly"})
FIELDS = ("userName", "job", "notebook", "clusterId", "application")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of which nothing is known, whatever runs the tests."""
    for name in (
        ORIGIN.name,
        USER_NAME.name,
        "JPY_SESSION_NAME",
        *(v for names in JOB_VARIABLES.values() for v in names),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(origin, "_of_driver", [])


def info(path: Path) -> dict[str, Any]:
    """The `commitInfo` of a new commit."""
    version = DeltaLog(path).write(pa.table({"id": [1]}))
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    return dict(json.loads(text.splitlines()[0])["commitInfo"])


def test_nothing_is_said_where_nothing_is_known(tmp_path: Path) -> None:
    assert not set(FIELDS) & set(info(tmp_path))


def test_a_job_and_a_notebook_are_told_under_the_names_of_delta_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else of the environment is."""
    for name, text in {**AIRFLOW, "JPY_SESSION_NAME": "/home/ann/load.ipynb", USER_NAME.name: "ann"}.items():
        monkeypatch.setenv(name, text)
    found = info(tmp_path)
    assert found["job"] == {"jobId": "sales", "jobName": "load", "jobRunId": "manual__1"}
    assert found["notebook"] == {"notebookId": "/home/ann/load.ipynb"}
    assert found["userName"] == "ann" and "application" not in found
    assert "secret" not in json.dumps(found) and "example.com" not in json.dumps(found)
    for text in ("off", "FALSE", "no", "0"):
        monkeypatch.setenv(ORIGIN.name, text)
        assert not set(FIELDS) & set(info(tmp_path))


@pytest.mark.parametrize("system", JOB_VARIABLES)
def test_what_runs_jobs_is_known_by_its_variables(system: str) -> None:
    names = JOB_VARIABLES[system]
    first = next(iter(names))
    variables = {name: f"x{n}" for n, name in enumerate(names)}
    assert of_process(variables).job == {field: variables[name] for name, field in names.items()}
    assert of_process({first: "x"}).job == {names[first]: "x"}
    assert of_process({name: "x" for name in names if name != first}).job == {}


def test_the_notebook_of_vs_code_is_known_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(user_ns={"__vsc_ipynb_file__": "/work/a.ipynb"})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert of_process({}).notebook == {"notebookId": "/work/a.ipynb"}
    assert of_process({"JPY_SESSION_NAME": "/b.ipynb"}).notebook == {"notebookId": "/b.ipynb"}
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert of_process({}).notebook == {}
    # While another thread imports it.
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    assert of_process({}).notebook == {}


def test_an_origin_travels_as_text(tmp_path: Path) -> None:
    assert from_text(WHOLE.to_text()) == WHOLE and from_text(NOBODY.to_text()) == NOBODY
    with carried({CARRIED: WHOLE.to_text()}):
        found = info(tmp_path)
    assert {name: found[name] for name in FIELDS} == WHOLE.fields()
    # Whoever sent nothing wants nothing told, whatever this process knows.
    with given(lambda: WHOLE), carried({CARRIED: NOBODY.to_text()}):
        assert not set(FIELDS) & set(info(tmp_path))
    with given(lambda: WHOLE), carried({}):
        assert info(tmp_path)["userName"] == "ann"


def test_the_application_is_the_job_where_nobody_else_runs_it() -> None:
    alone = of_application(NOBODY, "app-1", "nightly", "http://host:4040")
    assert alone.job == {"jobName": "nightly", "runId": "app-1"}
    assert alone.application == {"id": "app-1", "name": "nightly", "url": "http://host:4040"}
    ordered = of_application(of_process(AIRFLOW), "app-1", "nightly", None)
    assert ordered.job == {"jobId": "sales", "jobName": "load", "jobRunId": "manual__1", "runId": "app-1"}
    assert of_application(NOBODY, None, None, None) == NOBODY


def test_a_long_text_is_cut() -> None:
    fields = Origin("u" * 5000, {"jobId": "j" * 5000}).fields()
    assert len(fields["userName"]) == len(fields["job"]["jobId"]) == 1000


def test_the_history_tells_who_made_a_commit(tmp_path: Path) -> None:
    with given(lambda: WHOLE):
        info(tmp_path)
    (entry,) = DeltaLog(tmp_path).history()
    assert entry["application"] == {"id": "app-1", "name": "nightly"} and entry["job"] == {"jobId": "7"}
    assert made_by(entry) == "ann, job 7, notebook a.ipynb, application app-1 nightly"
    assert "application app-1 nightly" in History([entry])._repr_html_()
    alone = of_application(NOBODY, "app-1", "nightly", "http://host:4040")
    assert made_by(alone.fields()) == "application app-1 nightly http://host:4040"
    assert made_by({}) == ""


def test_who_made_a_change_is_told_with_its_rows(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    with given(lambda: WHOLE):
        log.write(pa.table({"id": [1]}), options={"delta.enableRowTracking": "true"})
    (row,) = log.blame().to_arrow().to_pylist()
    assert row["_commit_application"] == {"id": "app-1", "name": "nightly", "url": None}
    assert (row["_commit_user_name"], row["_commit_job"]["jobId"]) == ("ann", "7")
