"""The Dockerfiles of `examples/docker`: what they copy is there, and they install what the package needs."""

from __future__ import annotations

import fnmatch
import json
import re
import runpy
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "examples" / "docker").glob("*.Dockerfile"))
WHEEL = "dist/delta_ds-0.1.0-py3-none-any.whl"

instructions = runpy.run_path(str(ROOT / "scripts" / "try_dockerfile.py"))["instructions"]


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def file(request: pytest.FixtureRequest) -> Path:
    found = request.param
    assert isinstance(found, Path)
    return found


def test_what_an_image_copies_is_there(file: Path) -> None:
    sources = [text.split()[0] for name, text in instructions(file) if name == "COPY"]
    assert sources[0] == "dist/delta_ds-*.whl"
    assert fnmatch.fnmatch(WHEEL, sources[0])
    assert not fnmatch.fnmatch(WHEEL.replace("delta_ds-", "delta_ds_names-"), sources[0])
    assert [name for name in sources[1:] if not (ROOT / name).is_file()] == []


def test_commands_are_of_the_shell(file: Path) -> None:
    commands = [text for name, text in instructions(file) if name == "RUN"]
    assert commands
    for command in commands:
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_an_image_does_not_run_as_root(file: Path) -> None:
    users = [text for name, text in instructions(file) if name == "USER"]
    assert users[-1] not in ("root", "0")


def test_the_slim_image_starts_the_job_that_it_copies() -> None:
    told = dict(instructions(ROOT / "examples" / "docker" / "python.Dockerfile"))
    command = json.loads(told["CMD"])
    assert command[:2] == ["python3", told["COPY"].split()[1]]


def test_beside_a_pyspark_of_its_own_the_image_has_the_dependencies_of_the_package() -> None:
    text = (ROOT / "examples" / "docker" / "spark.Dockerfile").read_text()
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10; pytest brings it
        import tomli as tomllib
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {one for one in project["dependencies"] if not one.startswith("pyspark")}
    (line,) = re.findall(r"^RUN pip install --no-cache-dir (?!--)(.*)$", text, re.MULTILINE)
    assert set(line.replace('"', "").split()) == needed
