"""The version of what is built: of the git tag, and of its own for everything that has none."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Checkout:
    """A repository with what the version is made of."""

    def __init__(self, folder: Path, coming: str = "0.2.0.dev0") -> None:
        self.folder = folder
        (folder / "delta_ds").mkdir(parents=True)
        for name in ("hatch_build.py", "pyproject.toml", "pyspark_pydelta.py"):
            shutil.copy(ROOT / name, folder)
        self.write("_version.py", f'__version__ = "{coming}"\n')

    def write(self, name: str, text: str) -> None:
        (self.folder / "delta_ds" / name).write_text(text)

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        subprocess.run(
            ["git", "-C", str(self.folder), *identity, *arguments], check=True, capture_output=True, env=env
        )

    def commit(self, *tags: str) -> Checkout:
        if not (self.folder / ".git").exists():
            self.git("init")
        self.git("add", "-A")
        self.git("commit", "--allow-empty", "-m", "a change")
        for tag in tags:
            self.git("tag", tag)
        return self

    def module(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location("hatch_build_copy", self.folder / "hatch_build.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def version(self) -> str:
        return str(self.module().version())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "repository")


@pytest.mark.parametrize("tag", ["v0.2.0", "v0.2.0rc1", "v1.0"])
def test_a_commit_with_a_tag_has_its_version(checkout: Checkout, tag: str) -> None:
    assert checkout.commit(tag).version() == tag[1:]


def test_a_commit_without_tags_counts_from_the_first(checkout: Checkout) -> None:
    assert re.fullmatch(r"0\.2\.0\.dev2\+g[0-9a-f]{9}", checkout.commit().commit().version())


@pytest.mark.parametrize(
    ("tag", "base"),
    [("v0.1.0", "0.2.0"), ("v0.2.0rc1", "0.2.0"), ("v0.2.0", "0.2.1"), ("v0.3", "0.4")],
)
def test_a_commit_after_a_tag_comes_after_it(checkout: Checkout, tag: str, base: str) -> None:
    version = checkout.commit(tag).commit().commit().version()
    assert re.fullmatch(re.escape(base) + r"\.dev2\+g[0-9a-f]{9}", version)


def test_changes_that_git_does_not_have_are_told_apart(checkout: Checkout) -> None:
    committed = checkout.commit("v0.2.0").version()
    checkout.write("new.py", "a = 1\n")
    first = checkout.version()
    checkout.write("new.py", "a = 2\n")
    second = checkout.version()
    assert len({committed, first, second}) == 3
    assert re.fullmatch(r"0\.2\.1\.dev0\+g[0-9a-f]{9}\.d[0-9a-f]{8}", first)


def test_what_is_not_packaged_changes_no_version(checkout: Checkout) -> None:
    checkout.commit("v0.2.0")
    (checkout.folder / "notes.txt").write_text("what I have tried\n")
    assert checkout.version() == "0.2.0"


def test_a_checkout_without_git_has_the_version_of_its_files(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without = checkout.version()
    assert re.fullmatch(r"0\.2\.0\.dev0\+d[0-9a-f]{8}", without)
    assert without == Checkout(tmp_path / "another").version()
    checkout.commit("v0.2.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkout.version() == without


def test_a_repository_without_commits_has_the_version_of_its_files(checkout: Checkout) -> None:
    without = checkout.version()
    checkout.git("init")
    assert checkout.version() == without


def test_the_repository_of_somebody_else_counts_for_nothing(tmp_path: Path) -> None:
    outer = Checkout(tmp_path / "outer")
    outer.commit("v9.0.0")
    assert Checkout(tmp_path / "outer" / "vendored").version().startswith("0.2.0.dev0+d")


def test_a_hook_of_another_repository_does_not_change_the_version(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Checkout(tmp_path / "other").commit("v9.0.0")
    checkout.commit("v0.2.0")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert checkout.version() == "0.2.0"


def test_an_unpacked_sdist_has_its_own_version(tmp_path: Path) -> None:
    assert Checkout(tmp_path / "sdist", "0.2.0").commit("v9.0.0").version() == "0.2.0"
    built = "0.2.0.dev17+g1a2b3c4d5"
    assert Checkout(tmp_path / "another", built).version() == built


def test_a_tag_that_is_no_version_is_refused(checkout: Checkout) -> None:
    with pytest.raises(ValueError, match=r"'v2-final' is no version"):
        checkout.commit("v2-final").version()


def test_the_version_that_comes_next_is_that_of_the_changelog() -> None:
    import delta_ds

    found = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found is not None
    assert delta_ds.__version__ == f"{found[1]}.dev0"
