"""Note what tests have run with: versions of Python, Java and packages, as this environment has them.

    PYTHON scripts/tested_versions.py "make test"        of this interpreter's environment
    python scripts/tested_versions.py --environments     of every .venv of this checkout that there is

It goes into `docs/tested-versions.json`; the page is made of it. Run it after tests that passed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs" / "tested-versions.json"
# In the order of the page: what decides what a table looks like, or how it is reached.
PACKAGES = (
    "pyspark", "pyarrow", "numpy", "pandas", "sqlglot", "pyroaring", "fsspec", "s3fs", "gcsfs", "adlfs", "hdfs-native",
    "delta-spark", "deltalake", "polars", "duckdb", "typer", "dbt-core", "dbt-spark", "pyhive", "sqlalchemy",
    "apache-airflow", "dagster", "kedro", "kedro-datasets",
)  # fmt: skip
ENVIRONMENTS = {
    ".venv": "make test", ".venv-interop": "make test-interop", ".venv-dbt": "make test-dbt",
    ".venv-airflow": "make test-airflow", ".venv-dagster": "make test-dagster", ".venv-kedro": "make test-kedro",
    ".venv-clients": "make test-clients",
    ".venv-4.1": "make test-matrix", ".venv-4.2": "make test-matrix", ".venv-4.3": "make test-matrix",
}  # fmt: skip


def versions() -> dict[str, str]:
    """What this interpreter, its packages and the Java that Spark would take call themselves."""
    found = {"python": platform.python_version()}
    java = java_version()
    if java is not None:
        found["java"] = java
    here = {_plain(each.metadata["Name"]): each.version for each in importlib.metadata.distributions()}
    return {**found, **{name: here[name] for name in PACKAGES if name in here}}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def java_version() -> str | None:
    """The version of the Java that Spark takes; None: there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java:
        return None
    told = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    named = re.search(r'version "([^"]+)"', told)
    return named[1] if named else None


def record(suite: str) -> None:
    """Put this environment into the record, in place of what was there for these tests, this Python and this Spark."""
    found = versions()
    known = json.loads(RECORD.read_text()) if RECORD.exists() else []
    key = (suite, *_key(found))
    kept = [each for each in known if (each["suite"], *_key(each["versions"])) != key]
    kept.append({"suite": suite, "versions": found})
    kept.sort(key=lambda each: (each["suite"], *map(_number, _key(each["versions"]))))
    RECORD.write_text(json.dumps(kept, indent=1) + "\n")


def _key(found: dict[str, str]) -> tuple[str, str]:
    return tuple(".".join(found.get(name, "0").split(".")[:2]) for name in ("python", "pyspark"))  # type: ignore[return-value]


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suite", nargs="?", help="what was run, as `make test`")
    parser.add_argument(
        "--environments", action="store_true", help="of each .venv here that its target has filled"
    )
    given = parser.parse_args()
    if given.suite:
        record(given.suite)
    if given.environments:
        for folder, suite in ENVIRONMENTS.items():
            python = ROOT / folder / "bin" / "python"
            if python.exists():
                subprocess.run([str(python), __file__, suite], check=True)


if __name__ == "__main__":
    sys.exit(main())
