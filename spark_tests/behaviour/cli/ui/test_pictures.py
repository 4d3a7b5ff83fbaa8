"""The pictures of the guide are made by the script that says so, and are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from spark_tests.behaviour.cli.ui.browser import is_required, missing

ROOT = Path(__file__).resolve().parents[4]
IMAGES = ROOT / "docs" / "images"


def _size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def script() -> dict[str, object]:
    return runpy.run_path(str(ROOT / "scripts" / "ui_pictures.py"))


def test_the_guide_shows_pictures_of_the_script() -> None:
    shown = re.findall(r"\(\.\./images/([\w-]+)\.png\)", (ROOT / "docs" / "guide" / "ui.md").read_text())
    pictures = script()["PICTURES"]
    assert isinstance(pictures, dict) and sorted(shown) == sorted(pictures)


@pytest.mark.browser
@pytest.mark.skipif(missing() is not None and not is_required(), reason=missing() or "")
def test_the_pictures_can_be_made(tmp_path: Path) -> None:
    make = script()["make"]
    assert callable(make)
    made = make(tmp_path)
    assert {picture.name for picture in made} == {picture.name for picture in IMAGES.glob("ui-*.png")}
    for picture in made:
        assert _size(picture) == _size(IMAGES / picture.name)
        assert picture.stat().st_size > 10_000
