"""Say in one line what this machine lacks, before anything fails with a stack trace.

    python3 scripts/check_machine.py python     Python 3.10+ with venv and pip
    python3 scripts/check_machine.py java       Java 17+, found where Spark finds it: JAVA_HOME, then PATH
    python3 scripts/check_machine.py java --install     the same; installs Java where there is none and no
                                                        password is needed (apt as root or by sudo, Homebrew)

Exits with 1 and that line if something is missing. Written for old Pythons too: it has to run on them to
refuse them.
"""

import os
import re
import shutil
import subprocess
import sys

OLDEST_PYTHON = (3, 10)
OLDEST_JAVA = 17

# The first that the distribution has.
APT_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")
BREW_PACKAGE = "openjdk@17"
INSTALL_JAVA = (
    ("brew", f"brew install {BREW_PACKAGE}"),
    ("dnf", "sudo dnf install java-21-openjdk-headless"),
    ("apk", "apk add openjdk17-jre-headless"),
    ("zypper", "sudo zypper install java-17-openjdk-headless"),
    ("pacman", "sudo pacman -S jre17-openjdk-headless"),
)


def check_python():
    if sys.version_info < OLDEST_PYTHON:
        wanted = "Python {}.{} or newer is needed".format(*OLDEST_PYTHON)
        found = "{} is {}.{}".format(sys.executable, *sys.version_info[:2])
        return f"{wanted}, {found}: install one and run `make PYTHON=python3.12 ...`"
    try:
        import ensurepip  # noqa: F401  (venv puts pip into the environment with it)
        import venv  # noqa: F401
    except ImportError as error:
        advice = "install it (Debian, Ubuntu: apt install python3-venv)"
        return f"Python's module `{error.name}` is missing, without it there is no .venv: {advice}"
    return None


def java():
    """The `java` that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def check_java():
    found = java()
    if not found:
        home = os.environ.get("JAVA_HOME")
        where = f"JAVA_HOME={home} has no bin/java" if home else "no `java` on PATH, JAVA_HOME is not set"
        return f"Spark needs Java {OLDEST_JAVA}+: {where}; {java_advice()}"
    answer = subprocess.run([found, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = answer.stdout.decode("utf-8", "replace")
    version = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not version:
        return f"Spark needs Java {OLDEST_JAVA}+: `{found} -version` does not name a version; {java_advice()}"
    major = int(version.group(2) or 0) if version.group(1) == "1" else int(version.group(1))
    if major < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA}+: {found} is Java {major}; {java_advice()}"
    return None


def java_advice():
    """What to run on this machine, the first package manager that it has."""
    if shutil.which("apt-get"):
        package = (_apt_packages() or APT_PACKAGES)[0]
        return f"run `sudo apt-get install {package}`, or install another JDK {OLDEST_JAVA}+ and set JAVA_HOME to it"
    for manager, command in INSTALL_JAVA:
        if shutil.which(manager):
            return f"run `{command}`, or install another JDK {OLDEST_JAVA}+ and set JAVA_HOME to it"
    return f"install a JDK or JRE {OLDEST_JAVA} or newer and set JAVA_HOME to it"


def install_java():
    """Install Java from the distribution's packages, where that needs no password. Only where there is none."""
    if os.environ.get("JAVA_HOME") or _works(java()):
        return
    if shutil.which("apt-get"):
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        if root and not (shutil.which("sudo") and _quiet([*root, "true"])):
            return
        if not _apt_packages():  # the lists of a fresh image are empty
            _quiet([*root, "apt-get", "update"])
        for package in _apt_packages()[:1]:
            install = ["apt-get", "install", "-y", "--no-install-recommends", package]
            _loud([*root, "env", "DEBIAN_FRONTEND=noninteractive", *install])
    elif shutil.which("brew"):
        _loud(["brew", "install", BREW_PACKAGE])
        # Homebrew links this Java to no place that PATH has.
        prefix = subprocess.run(["brew", "--prefix", BREW_PACKAGE], stdout=subprocess.PIPE)
        home = os.path.join(prefix.stdout.decode().strip(), "libexec", "openjdk.jdk", "Contents", "Home")
        if not _works(java()) and os.path.isdir(home):
            sys.exit(f"Homebrew installed Java: run `export JAVA_HOME={home}`, then make again")


def _apt_packages():
    return [package for package in APT_PACKAGES if _quiet(["apt-cache", "show", "--quiet", package])]


def _works(found):
    return bool(found) and _quiet([found, "-version"])


def _quiet(command):
    """Whether a command succeeds; what it prints is for nobody."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        return False


def _loud(command):
    print(f"There is no Java here. Running: {' '.join(command)}", flush=True)
    subprocess.run(command, stdout=subprocess.DEVNULL)


def main():
    checks = {"python": check_python, "java": check_java}
    arguments = sys.argv[1:]
    for name in [argument for argument in arguments if argument != "--install"] or list(checks):
        problem = checks[name]()
        if problem and name == "java" and "--install" in arguments:
            install_java()
            problem = checks[name]()
        if problem:
            sys.exit(problem)


if __name__ == "__main__":
    main()
