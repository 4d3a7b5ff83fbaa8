"""What the sdist and the wheels hold."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def build(folder: Path, kind: str, into: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(into)],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (built,) = into.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_of_the_sdist_is_that_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build(ROOT, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    again = build(unpacked, "wheel", tmp_path / "again")
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def test_the_wheel_holds_the_package_and_its_version(wheel: Path) -> None:
    held = contents(wheel)
    version = wheel.name.split("-")[1]
    assert f'__version__ = "{version}"'.encode() in held["delta_ds/_version.py"]
    assert f"\nVersion: {version}\n".encode() in held[f"delta_ds-{version}.dist-info/METADATA"]
    others = {name for name in held if not name.startswith(("delta_ds/", f"delta_ds-{version}.dist-info/"))}
    assert others == {"pyspark_pydelta.py"}
    packaged = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "delta_ds").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert packaged == {name for name in held if name.startswith("delta_ds/")}


def test_building_changes_nothing_in_the_checkout(wheel: Path) -> None:
    assert '.dev0"' in (ROOT / "delta_ds" / "_version.py").read_text()


def test_the_names_of_delta_spark_have_the_same_version(wheel: Path, tmp_path: Path) -> None:
    names = build(ROOT / "distributions" / "delta-names", "wheel", tmp_path)
    assert names.name.split("-")[1] == wheel.name.split("-")[1]
    held = contents(names)
    assert {name.split("/")[0] for name in held if "dist-info" not in name} == {"delta"}
    (metadata,) = (data for name, data in held.items() if name.endswith("/METADATA"))
    assert f"Requires-Dist: delta-ds=={wheel.name.split('-')[1]}\n".encode() in metadata
