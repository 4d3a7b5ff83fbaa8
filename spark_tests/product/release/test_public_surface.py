"""What is public stays as it is recorded in `spark_tests/product/public_surface`, and what goes away warned."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

import delta_ds
from delta_ds import DeltaDeprecationWarning
from delta_ds.deprecations import DEPRECATIONS, Deprecation
from delta_ds.spark.engines.arguments import public

ROOT = Path(__file__).resolve().parents[3]
OLD = Deprecation("old()", since="0.3", until="0.5", instead="new()")


@pytest.fixture(scope="module")
def surfaces() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "public_surface.py"))


def test_what_is_public_is_recorded(surfaces: dict[str, Any]) -> None:
    changed, gone = surfaces["outdated"]()
    assert not gone, surfaces["instruction"](gone)
    assert not changed, (
        f"new public names: run scripts/generate_docs.py ({', '.join(f.name for f in changed)})"
    )


def test_every_file_records_something(surfaces: dict[str, Any]) -> None:
    assert {file.stem for file in surfaces["RECORDED"].glob("*.txt")} == set(surfaces["SURFACES"])
    for file, lines in surfaces["surface"]().items():
        assert len(lines) > 20, file


def test_a_name_that_disappears_is_refused_with_what_to_do(
    surfaces: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_ds, "__all__", [name for name in delta_ds.__all__ if name != "ship"])
    surfaces["surface"].cache_clear()
    try:
        changed, gone = surfaces["outdated"]()
    finally:
        surfaces["surface"].cache_clear()
    (line,) = gone
    assert line.startswith("names: delta_ds.ship(spark")
    assert [file.name for file in changed] == ["names.txt"]
    told = surfaces["instruction"](gone)
    assert line in told
    assert "--accept-changes" in told and "CHANGELOG.md" in told


def test_an_argument_that_changes_is_a_change(surfaces: dict[str, Any]) -> None:
    lines = (surfaces["RECORDED"] / "names.txt").read_text()
    assert (
        "\ndelta_ds.DeltaLog.snapshot(self, version: int | None = None, timestamp: datetime | int | None"
        in lines
    )


# --- deprecations


def test_the_warning_is_for_the_line_of_the_user() -> None:
    @public
    @OLD.marks
    def old(value: int) -> int:
        return value

    with pytest.warns(DeltaDeprecationWarning, match=r"old\(\) is deprecated since delta_ds 0.3") as found:
        assert old(3) == 3
    assert [warning.filename for warning in found] == [__file__]


def test_a_program_may_make_the_warning_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeltaDeprecationWarning)
        with pytest.raises(DeltaDeprecationWarning, match="use new()"):
            OLD.warn()


def _minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def _next_minor(version: str) -> tuple[int, ...]:
    major, minor = _minor(version)
    return (major, minor + 1)


def test_what_is_deprecated_keeps_to_the_rule() -> None:
    coming = delta_ds.__version__.partition(".dev")[0]
    for each in DEPRECATIONS:
        assert _minor(each.until) > _next_minor(each.since), f"{each.name} warns for too short a time"
        assert _minor(each.until) > _minor(coming), f"{each.name} was to go in {each.until}: take it away"
