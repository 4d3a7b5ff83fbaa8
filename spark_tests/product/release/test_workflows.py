"""The workflows of GitHub Actions: they call make targets that are there, and may do no more than they have to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What a job may have beside reading the code, and the action or command that needs it.
GRANTED = {
    ("publish", "id-token"): "pypa/gh-action-pypi-publish",
    ("publish", "attestations"): "actions/attest-build-provenance",
    ("notes", "contents"): "gh release create",
    ("pages", "pages"): "actions/deploy-pages",
    ("pages", "id-token"): "actions/deploy-pages",
}


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict)
    return found


JOBS = [
    pytest.param(name, job, id=f"{path.stem}-{name}")
    for path in WORKFLOWS
    for name, job in read(path)["jobs"].items()
]


def steps(job: dict[str, Any], kind: str) -> list[str]:
    return [step[kind] for step in job["steps"] if kind in step]


def commands(job: dict[str, Any]) -> list[str]:
    """What a job runs, once for each value of its matrix."""
    found = steps(job, "run")
    for name, values in job.get("strategy", {}).get("matrix", {}).items():
        place = "${{ matrix.%s }}" % name
        found = [
            command.replace(place, str(value)) for command in found for value in values if place in command
        ] + [command for command in found if place not in command]
    return found


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    return set(phony.split())


def test_there_are_workflows_for_changes_nights_and_releases() -> None:
    assert {path.stem for path in WORKFLOWS} == {"ci", "nightly", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_the_code_and_nothing_else(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_a_job_may_do_what_its_steps_need(name: str, job: dict[str, Any]) -> None:
    used = "\n".join([*steps(job, "uses"), *steps(job, "run")])
    for permission, level in job.get("permissions", {}).items():
        if (permission, level) != ("contents", "read"):
            assert GRANTED[(name, permission)] in used
    assert "secrets." not in str(job), "a stored secret"
    assert 0 < job["timeout-minutes"] <= 360


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_actions_are_named_by_their_commits(name: str, job: dict[str, Any]) -> None:
    for action in steps(job, "uses"):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action


def test_every_commit_of_an_action_says_its_version() -> None:
    versions: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for line in path.read_text().splitlines():
            if "uses:" in line:
                found = re.search(r"uses: (\S+) # (v\d+\.\d+\.\d+)$", line)
                assert found, line
                versions.setdefault(found[1], set()).add(found[2])
    assert all(len(named) == 1 for named in versions.values()), versions
    actions = [action.partition("@")[0] for action in versions]
    assert len(set(actions)) == len(actions), "two versions of one action"


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_jobs_call_make_targets_that_are_there(name: str, job: dict[str, Any]) -> None:
    for command in commands(job):
        program, *arguments = command.split()
        if program == "make":
            wanted = {argument for argument in arguments if "=" not in argument}
            assert wanted and wanted <= targets(), command
        elif program == "python3":
            assert (ROOT / arguments[0]).is_file(), command
        else:
            assert program == "gh", command


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_jobs_come_after_jobs_that_are_there(name: str, job: dict[str, Any]) -> None:
    known = {each.values[0] for each in JOBS}
    needed = job.get("needs", [])
    assert {needed} if isinstance(needed, str) else set(needed) <= known


def test_nothing_is_published_that_was_not_tried() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert set(jobs["publish"]["needs"]) >= {"build", "try", "test"}
    assert [job for job in jobs if "make dist" in steps(jobs[job], "run")] == ["build"]


def test_a_release_is_only_made_of_a_tag() -> None:
    # YAML takes `on` for true.
    assert read(ROOT / ".github" / "workflows" / "release.yml")[True] == {"push": {"tags": ["v*"]}}


def test_ci_tries_every_python_and_spark_that_is_promised() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    release = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    makefile = (ROOT / "Makefile").read_text()
    (pythons,) = re.findall(r"^PYTHONS \?= (.*)$", makefile, re.MULTILINE)
    (sparks,) = re.findall(r"^MATRIX := (.*)$", makefile, re.MULTILINE)
    assert jobs["python"]["strategy"]["matrix"]["python"] == pythons.split()
    assert release["try"]["strategy"]["matrix"]["python"] == pythons.split()
    assert jobs["spark"]["strategy"]["matrix"]["spark"] == sparks.split()
