"""Texts that users read are in plain English: `scripts/check_prose.py` finds none of the words of its list."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "check_prose.py"))


def found(script: dict[str, Any], path: Path) -> list[str]:
    rules = script["rules"](script["RULES"].read_text(encoding="utf-8"))
    return [line.replace(str(path), path.name) for line in script["findings"]([path], rules)]


def test_texts_that_users_read_are_plain(script: dict[str, Any]) -> None:
    paths = [path for pattern in script["READ_BY_USERS"] for path in sorted(ROOT.glob(pattern))]
    assert len(paths) > 60
    assert [line for path in paths for line in found(script, path)] == []


def test_every_pattern_of_files_names_some(script: dict[str, Any]) -> None:
    assert [pattern for pattern in script["READ_BY_USERS"] if not list(ROOT.glob(pattern))] == []


def test_a_finding_names_file_line_words_and_advice(script: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nFiles are written\nanew. A path that is no table.\n")
    assert found(script, page) == [
        "page.md:4: 'anew': again; for files: rewrite",
        "page.md:4: 'is no table': is not a",
    ]


def test_code_names_and_addresses_are_not_prose(script: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`anew` and [this](anew.md)\n\n```python\nwhoever = 1\n```\n\nThere is no table.\n")
    assert found(script, page) == []


def test_texts_of_a_module_are_looked_at_and_its_names_are_not(
    script: dict[str, Any], tmp_path: Path
) -> None:
    module = tmp_path / "module.py"
    module.write_text('meanwhile = 1\nTEXT = (\n    "rows go, "\n    "whoever reads them"\n)\n')
    assert found(script, module) == ["module.py:3: 'whoever': who; if somebody"]


def test_a_line_that_is_no_rule_is_refused(script: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no rule"):
        script["rules"]("# a comment\nanew\n")
