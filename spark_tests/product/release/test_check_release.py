"""A tag becomes a release where changelog, version and files agree."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CHANGELOG = """# Changelog

## 1.2.0 (2026-05-01)

### Added
- This.

## 1.1.0 (2026-01-01)

### Fixed
- That.
"""
COMING = '__version__ = "1.2.0.dev0"\n'


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "check_release.py"))


def files(version: str) -> list[str]:
    return [
        f"delta_ds-{version}.tar.gz",
        f"delta_ds-{version}-py3-none-any.whl",
        f"delta_ds_names-{version}-py3-none-any.whl",
    ]


def test_a_release_that_agrees_is_fine(script: dict[str, Any]) -> None:
    assert list(script["problems"]("v1.2.0", CHANGELOG, COMING, files("1.2.0"))) == []


def test_a_candidate_comes_before_the_date_is_known(script: dict[str, Any]) -> None:
    unreleased = CHANGELOG.replace("2026-05-01", "unreleased")
    assert list(script["problems"]("v1.2.0rc1", unreleased, COMING, files("1.2.0rc1"))) == []


@pytest.mark.parametrize(
    ("tag", "changelog", "coming", "built", "told"),
    [
        ("1.2.0", CHANGELOG, COMING, "1.2.0", "no tag of a release"),
        ("v1.2", CHANGELOG, COMING, "1.2", "no tag of a release"),
        ("v1.3.0", CHANGELOG, COMING.replace("1.2", "1.3"), "1.3.0", "no section '## 1.3.0"),
        ("v1.1.0", CHANGELOG, COMING.replace("1.2", "1.1"), "1.1.0", "the top of CHANGELOG.md is 1.2.0"),
        ("v1.2.0", CHANGELOG.replace("2026-05-01", "unreleased"), COMING, "1.2.0", "put the date there"),
        ("v1.2.0", CHANGELOG, COMING.replace("1.2", "1.1"), "1.2.0", "_version.py has to say"),
        ("v1.2.0", CHANGELOG, COMING, "1.2.0.dev3+g0", "run make dist"),
    ],
)
def test_what_does_not_agree_is_named(
    script: dict[str, Any], tag: str, changelog: str, coming: str, built: str, told: str
) -> None:
    (problem,) = script["problems"](tag, changelog, coming, files(built))
    assert told in problem


def test_notes_are_the_section_of_the_changelog(script: dict[str, Any]) -> None:
    assert script["notes"]("v1.2.0", CHANGELOG) == "### Added\n- This.\n"
    assert script["notes"]("v1.1.0rc2", CHANGELOG) == "### Fixed\n- That.\n"


def test_the_changelog_has_the_form_that_a_release_is_cut_from(script: dict[str, Any]) -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    found = script["sections"](text)
    assert len(found) == text.count("\n## ")
    dates = [date for date, _ in found.values()]
    assert "unreleased" not in dates[1:]
    assert dates[1:] == sorted(dates[1:], reverse=True)
    for version, (_, body) in found.items():
        headings = re.findall(r"^### (.*)$", body, re.MULTILINE)
        assert headings and set(headings) <= set(script["KINDS"]), version
        assert len(headings) == len(set(headings)), f"{version} has a heading twice"
        assert [line for line in body.splitlines() if line[:1] not in ("", "#", "-", " ")] == [], version


def test_versions_are_those_of_the_environment_that_is_asked(tmp_path: Path) -> None:
    import platform
    import shutil
    import subprocess
    import sys

    import pyarrow as pa

    (tmp_path / "docs").mkdir()
    (tmp_path / "scripts").mkdir()
    copy = shutil.copy(ROOT / "scripts" / "tested_versions.py", tmp_path / "scripts")
    for _ in range(2):  # The second goes in place of the first.
        subprocess.run([sys.executable, str(copy), "make test"], check=True)
    (entry,) = json.loads((tmp_path / "docs" / "tested-versions.json").read_text())
    assert entry["suite"] == "make test"
    assert entry["versions"]["python"] == platform.python_version()
    assert entry["versions"]["pyarrow"] == pa.__version__
