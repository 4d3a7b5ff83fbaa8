"""The version of what is built: that of the git tag. Used by hatchling, here and in `distributions/`.

In a checkout `delta_ds/_version.py` says which version comes next, as `0.2.0.dev0`; nothing is written there. What is
built has a version of its own in its copy of that file:

- a commit with the tag `v0.2.0`: `0.2.0`;
- another commit: `0.2.0.dev17+g1a2b3c4`, 17 commits after the last tag (or the first commit);
- files that git does not have like this: the same and `.d` with a digest of the package;
- no git, or no commits: `0.2.0.dev0+d` with the digest;
- an unpacked sdist: what the sdist says.

So two builds of one version hold the same code, and a driver tells executors with another one:
`spark/base/processes.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
VERSION_FILE = ROOT / "delta_ds" / "_version.py"
# What of the repository gets into wheels.
PACKAGED = ("delta_ds", "pyspark_pydelta.py", "pyproject.toml", "hatch_build.py")

_ASSIGNED = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)((?:a|b|rc)\d+)?")
_NEXT = re.compile(r"(\d+(?:\.\d+)*)\.dev0")


def version() -> str:
    """The version of what is built of these files.

    Raises
    ------
    ValueError
        `_version.py` or the tag do not say one.
    """
    written = version_in(VERSION_FILE.read_text())
    coming = _NEXT.fullmatch(written)
    if coming is None:  # Of an sdist.
        return written
    described = _git("describe", "--tags", "--long", "--match", "v[0-9]*", "HEAD")
    commit = _git("rev-parse", "--short=9", "HEAD")
    if _git("rev-parse", "--show-toplevel") != str(ROOT) or commit is None:
        return f"{written}+d{digest()}"
    dirty = f".d{digest()}" if _git("status", "--porcelain", "--", *PACKAGED) else ""
    if described is None:
        return f"{coming[1]}.dev{_git('rev-list', '--count', 'HEAD')}+g{commit}{dirty}"
    tag, distance, _ = described.rsplit("-", 2)
    released = _RELEASE.fullmatch(tag)
    if released is None:
        raise ValueError(f"the tag {tag!r} is no version such as v1.2.0 or v1.2.0rc1")
    if distance == "0" and not dirty:
        return tag.removeprefix("v")
    return f"{_after(released, coming[1])}.dev{distance}+g{commit}{dirty}"


def version_in(text: str) -> str:
    """The version that a `_version.py` has.

    Raises
    ------
    ValueError
        It has none.
    """
    found = _ASSIGNED.search(text)
    if found is None:
        raise ValueError(f'{VERSION_FILE} has no line __version__ = "..."')
    return found[1]


def digest() -> str:
    """Eight hexadecimal digits of what is packaged, in any checkout the same."""
    found = hashlib.sha256()
    for name in PACKAGED:
        top = ROOT / name
        files = sorted(path for path in top.rglob("*") if path.is_file()) if top.is_dir() else [top]
        for path in files:
            if path.suffix not in (".pyc", ".pyo"):
                data = path.read_bytes()
                found.update(f"{path.relative_to(ROOT).as_posix()}\0{len(data)}\0".encode() + data)
    return found.hexdigest()[:8]


def _after(released: re.Match[str], coming: str) -> str:
    """The version that comes next: what `_version.py` says, unless that was released."""
    last = tuple(map(int, released[1].split(".")))
    if released[2] or tuple(map(int, coming.split("."))) > last:
        return coming
    return ".".join(map(str, (*last[:-1], last[-1] + 1)))


def _git(*arguments: str) -> str | None:
    """What git says; None: there is no git, no repository, or no such thing in it."""
    git = shutil.which("git")
    if git is None:
        return None
    # Hooks of git name the repository that they are of.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run([git, "-C", str(ROOT), *arguments], capture_output=True, text=True, env=env)
    return done.stdout.strip() if done.returncode == 0 else None


class VersionHook(BuildHookInterface):  # type: ignore[type-arg]
    """Gives sdist and wheel a `_version.py` with the version that they are called by."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # It is the checkout that is imported.
            return
        self._folder = tempfile.mkdtemp(prefix="delta-ds-version-")
        copy = os.path.join(self._folder, "_version.py")
        text = VERSION_FILE.read_text()
        Path(copy).write_text(text.replace(version_in(text), self.metadata.version))
        build_data["force_include"][copy] = "delta_ds/_version.py"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self._folder)
