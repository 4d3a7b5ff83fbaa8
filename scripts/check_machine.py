"""Say in one line what this machine lacks, before anything fails with a stack trace.

    python3 scripts/check_machine.py python     Python 3.10+ with venv and pip
    python3 scripts/check_machine.py java       Java 17+, found where Spark finds it: JAVA_HOME, then PATH

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


def check_java():
    advice = (
        f"install a JDK or JRE {OLDEST_JAVA} or newer (for example openjdk-17-jre-headless or temurin-21) "
        "and point JAVA_HOME at it"
    )
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not shutil.which(java):
        where = f"JAVA_HOME={home} has no bin/java" if home else "no `java` on PATH, JAVA_HOME is not set"
        return f"Spark needs Java {OLDEST_JAVA}+: {where}; {advice}"
    answer = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = answer.stdout.decode("utf-8", "replace")
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return f"Spark needs Java {OLDEST_JAVA}+: `{java} -version` does not name a version; {advice}"
    major = int(found.group(2) or 0) if found.group(1) == "1" else int(found.group(1))
    if major < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA}+: {java} is Java {major}; {advice}"
    return None


def main():
    checks = {"python": check_python, "java": check_java}
    for name in sys.argv[1:] or list(checks):
        problem = checks[name]()
        if problem:
            sys.exit(problem)


if __name__ == "__main__":
    main()
