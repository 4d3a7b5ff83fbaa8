"""On a machine without Java `make` installs one where it may, and else says in one line what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JAVA = "echo 'openjdk version \"17.0.9\"' >&2"


@pytest.fixture
def bin(tmp_path: Path) -> Path:
    """The only folder of PATH: what a test puts there is all that the machine has."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env", "cat", "chmod", "true"):
        found = next(place for place in ("/bin", "/usr/bin") if Path(place, name).exists())
        (folder / name).symlink_to(Path(found, name))
    return folder


def program(bin: Path, name: str, script: str) -> None:
    (bin / name).write_text(f"#!/bin/sh\n{script}\n")
    (bin / name).chmod(0o755)


def makes_java(bin: Path) -> str:
    quoted = JAVA.replace('"', '\\"')
    return f"printf '%s\\n' '#!/bin/sh' \"{quoted}\" > {bin}/java; chmod 755 {bin}/java"


def check(bin: Path, *arguments: str, user: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    script = (
        f"import os, runpy, sys; os.geteuid = lambda: {user};"
        f" sys.argv = ['check_machine', *{list(arguments)!r}];"
        f" runpy.run_path({str(ROOT / 'scripts' / 'check_machine.py')!r}, run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": str(bin), "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def apt(bin: Path, has: str = "openjdk-21-jre-headless") -> Path:
    """A distribution that has one package of Java; the file that its calls are written to."""
    calls = bin.parent / "calls"
    program(bin, "apt-cache", f'for package; do :; done; [ "$package" = {has} ]')
    program(bin, "apt-get", f'echo "$@" >> {calls}; [ "$1" = install ] || exit 0\n{makes_java(bin)}')
    return calls


def test_root_installs_the_package_that_the_distribution_has(bin: Path) -> None:
    calls = apt(bin)
    done = check(bin, "java", "--install")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines() == ["install -y --no-install-recommends openjdk-21-jre-headless"]
    assert "apt-get install" in done.stdout


def test_sudo_without_a_password_installs_too(bin: Path) -> None:
    apt(bin)
    program(bin, "sudo", '[ "$1" = -n ] || exit 1\nshift\nexec "$@"')
    assert check(bin, "java", "--install", user=1000).returncode == 0
    assert (bin / "java").exists()


def test_lists_of_packages_are_fetched_where_there_are_none(bin: Path) -> None:
    calls = apt(bin, has="none")
    done = check(bin, "java", "--install")
    assert calls.read_text().splitlines() == ["update"]
    assert done.returncode == 1


@pytest.mark.parametrize("sudo", ["exit 1", None])
def test_who_may_not_install_is_told_in_one_line_what_to_install(bin: Path, sudo: str | None) -> None:
    calls = apt(bin)
    if sudo:
        program(bin, "sudo", sudo)
    done = check(bin, "java", "--install", user=1000)
    assert done.returncode == 1
    assert not calls.exists()
    (line,) = done.stderr.splitlines()
    assert "Java 17+" in line
    assert "`sudo apt-get install openjdk-21-jre-headless`" in line


@pytest.mark.parametrize(
    ("manager", "advice"),
    [("dnf", "dnf install java"), ("apk", "apk add openjdk17"), (None, "set JAVA_HOME to it")],
)
def test_other_machines_are_told_in_one_line(bin: Path, manager: str | None, advice: str) -> None:
    if manager:
        program(bin, manager, "exit 0")
    done = check(bin, "java", "--install")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert advice in line


def test_homebrew_installs_and_names_the_folder(bin: Path, tmp_path: Path) -> None:
    home = tmp_path / "openjdk@17" / "libexec" / "openjdk.jdk" / "Contents" / "Home"
    home.mkdir(parents=True)
    program(bin, "brew", f'[ "$1" = --prefix ] && echo {tmp_path / "openjdk@17"}; exit 0')
    done = check(bin, "java", "--install")
    assert done.returncode == 1
    assert done.stderr.strip() == f"Homebrew installed Java: run `export JAVA_HOME={home}`, then make again"


def test_nothing_is_installed_beside_a_java_or_a_java_home(bin: Path, tmp_path: Path) -> None:
    calls = apt(bin)
    done = check(bin, "java", "--install", JAVA_HOME=str(tmp_path / "gone"))
    assert done.returncode == 1
    assert "has no bin/java" in done.stderr
    program(bin, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    old = check(bin, "java", "--install")
    assert "is Java 11" in old.stderr
    assert not calls.exists()


def test_looking_alone_installs_nothing(bin: Path) -> None:
    calls = apt(bin)
    assert check(bin, "java").returncode == 1
    assert not calls.exists()
