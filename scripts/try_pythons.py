"""Try what `dist/` holds on other Pythons, each in a bare environment, and then the quick tests: `make test-pythons`.

    scripts/try_pythons.py --tests "-m 'not spark'" [--require] [--no-spark] [--record] 3.10 3.11 3.12

For each: the wheel with nothing but what it declares, every example and command in it (`try_wheel.py`, needs Java), a
wheel built of the sdist and compared with the one there, then the quick tests of this checkout with what they need.
A Python is looked for on PATH and among pyenv's. One that is not there is named and left out; with `--require` that
fails.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def interpreter(version: str) -> str | None:
    """A Python of a version such as 3.12, by its path; None: there is none."""
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [found] if found else []
    candidates += [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]
    asked = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    for candidate in candidates:
        # A shim of pyenv is on PATH for versions that are not chosen, too.
        done = subprocess.run([candidate, "-c", asked], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def contents(wheel: Path) -> dict[str, bytes]:
    """What a wheel holds, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def one(pattern: str, folder: Path = DIST) -> Path:
    """The only file of a name.

    Raises
    ------
    SystemExit
        There is none, or there are several.
    """
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder} has {len(found)} files {pattern}, not one: run make dist")
    return found[0]


def compare(built: Path, known: Path) -> None:
    """
    Raises
    ------
    SystemExit
        Two wheels differ; the files are named.
    """
    ours, theirs = contents(built), contents(known)
    different = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if different:
        raise SystemExit(f"{built.name} differs from {known.name} in {', '.join(different[:20])}")


def try_python(version: str, found: str, tests: list[str], spark: bool, record: bool) -> None:
    """Go through all of it with one Python.

    Raises
    ------
    subprocess.CalledProcessError, SystemExit
        Something failed; it was printed.
    """
    home = ROOT / f".venv-py{version}"
    shutil.rmtree(home, ignore_errors=True)
    run([found, "-m", "venv", str(home)])
    python = str(home / "bin" / "python")
    env = {**os.environ, "PYSPARK_PYTHON": python}
    # Where these say something, more than the environment is tried.
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME"):
        env.pop(name, None)
    wheel = one("delta_ds-*.whl")
    run([python, *PIP, str(wheel), str(one("delta_ds_names-*.whl"))], env)
    run([python, "-c", "import delta_ds; print('delta_ds', delta_ds.__version__)"], env, home)
    again = home / "from-sdist"
    run([python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir",
         str(again), str(one("delta_ds-*.tar.gz"))], env, home)  # fmt: skip
    compare(one("*.whl", again), wheel)
    if spark:
        run([python, str(ROOT / "scripts" / "try_wheel.py")], env, home)
    # Where the package `delta` is, some tests find it that ask what is said without.
    run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "delta-ds-names"], env)
    run([python, *PIP, "--editable", f"{ROOT}[dev]"], env)
    run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], {**env, "DELTA_DS_QUICK": "1"})
    if record:
        run([python, str(ROOT / "scripts" / "tested_versions.py"), "make test-pythons"], env)


def run(command: list[str], env: dict[str, str] | None = None, folder: Path = ROOT) -> None:
    """Run a program.

    Raises
    ------
    subprocess.CalledProcessError
        It failed.
    """
    subprocess.run(command, check=True, env=env, cwd=folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="+", help="such as 3.12")
    parser.add_argument("--tests", required=True, help="arguments of pytest for the quick tests")
    parser.add_argument("--require", action="store_true", help="a Python that is not here is an error")
    parser.add_argument("--no-spark", action="store_true", help="without try_wheel.py")
    parser.add_argument("--record", action="store_true", help="into docs/tested-versions.json")
    given = parser.parse_args()
    failed = 0
    for version in given.versions:
        began = time.monotonic()
        found = interpreter(version)
        if found is None:
            print(f"== Python {version}: not on this machine", flush=True)
            failed += given.require
            continue
        print(f"== Python {version}: {found}", flush=True)
        try:
            try_python(version, found, shlex.split(given.tests), not given.no_spark, given.record)
        except subprocess.CalledProcessError as error:
            print(f"== Python {version}: FAILED: {' '.join(error.cmd[:4])} ...", flush=True)
            failed += 1
        else:
            print(f"== Python {version}: works, {time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
