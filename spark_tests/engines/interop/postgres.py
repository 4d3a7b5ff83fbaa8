"""A PostgreSQL server on loopback for the metastore of Hive, such as of Debian's package `postgresql`."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob

import pytest

from spark_tests.engines.stores.servers import free_port

# Of Debian's package `libpostgresql-jdbc-java`, or of Maven Central.
_DRIVER = "/usr/share/java/postgresql.jar"
_ARTIFACT = "org.postgresql:postgresql:42.7.7"
# Hive makes its tables in the middle of transactions that hold their locks: only `make_metastore` does it safely.
MAKES_TABLES = {"spark.hadoop.datanucleus.schema.autoCreateAll": "true"}
# PostgreSQL does not run as root.
_USER = "postgres"


@contextmanager
def running() -> Iterator[dict[str, str]]:
    """The settings of Spark for a metastore in a server of its own, which goes at the end of the block."""
    programs = {name: _program(name) for name in ("initdb", "pg_ctl", "createdb")}
    as_root = os.geteuid() == 0
    if as_root and _USER not in {one.pw_name for one in pwd.getpwall()}:
        pytest.skip(f"PostgreSQL does not run as root, and there is no user {_USER}")
    folder, port = tempfile.mkdtemp(prefix="metastore-"), free_port()
    if as_root:
        shutil.chown(folder, _USER)

    def run(name: str, *arguments: str) -> None:
        done = subprocess.run(
            [programs[name], *arguments], cwd=folder, user=_USER if as_root else None,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{name}: {done.stderr}"

    data, user = f"{folder}/data", _USER if as_root else getpass.getuser()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
    try:
        run("initdb", "-D", data, "-A", "trust", "--locale=C", "--encoding=UTF8", "-U", user)
        run("pg_ctl", "-D", data, "-o", options, "-l", f"{folder}/log", "-w", "start")
        try:
            run("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", user, "metastore")
            yield _settings(port, user, _driver(folder))
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _driver(folder: str) -> str:
    if os.path.exists(_DRIVER):
        return _DRIVER
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(
            "there is no driver of PostgreSQL: install Debian's package libpostgresql-jdbc-java, or Maven"
        )
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    command = [maven, "-q", "-B", copy, f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    (found,) = glob(f"{folder}/postgresql-*.jar")
    return found


def _settings(port: int, user: str, driver: str) -> dict[str, str]:
    of_hive = {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{port}/metastore",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": user,
        "javax.jdo.option.ConnectionPassword": "",
        "hive.metastore.schema.verification": "false",
    }
    # Java looks for drivers on the class path alone, and not among `spark.jars`.
    return {
        "spark.driver.extraClassPath": driver,
        **{f"spark.hadoop.{name}": text for name, text in of_hive.items()},
    }


def _program(name: str) -> str:
    places = [os.environ.get("PATH", ""), *sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        pytest.skip(f"there is no {name}: install PostgreSQL, such as Debian's package postgresql")
    return found
