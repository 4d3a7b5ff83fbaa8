"""The list of what a release brings names every declared package, and no licence that is not permissive passes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader; the script is run by newer ones")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "sbom.py"))


def component(name: str, *licences: str, expression: str | None = None) -> dict[str, Any]:
    entries = [{"license": {"name": text}} for text in licences]
    return {"name": name, "version": "1.0", "licenses": entries or [{"expression": expression}]}


def test_the_page_has_every_declared_package_with_its_versions_and_extras(script: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| (.*?) \| (.+?) \|$", page, re.MULTILINE)
    found = {name: (extra, versions) for name, versions, extra, _ in rows}
    wanted = {
        name: (f"`{extra}`" if extra else "always", f"`{versions}`" if versions else "any")
        for name, (extra, versions) in script["declared"]().items()
    }
    assert found == wanted, "run make sbom ARGS=--page"


def test_the_page_is_written_from_the_components(script: dict[str, Any]) -> None:
    components = [component(name, expression="MIT") for name in script["declared"]()]
    assert script["page"](components).count("| MIT |") == len(components)


@pytest.mark.parametrize(
    "licence",
    ["Apache-2.0", "License :: OSI Approved :: MIT License", "BSD-3-Clause", "Python-2.0", "MPL-2.0"],
)
def test_permissive_licences_pass(script: dict[str, Any], licence: str) -> None:
    assert list(script["refused"]([component("some", licence)])) == []


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "AGPL-3.0", "Limited Use, Permitted Parties", "SSPL-1.0"]
)
def test_other_licences_are_named(script: dict[str, Any], licence: str) -> None:
    assert list(script["refused"]([component("some", licence)])) == [f"some 1.0: {licence}"]


def test_a_package_without_a_licence_is_named(script: dict[str, Any]) -> None:
    assert list(script["refused"]([{"name": "some", "version": "1.0"}])) == ["some 1.0: names no licence"]
