"""The commands of the page `on-kubernetes.md`, as far as a machine without Kubernetes can run them.

Each one runs its job on a standalone cluster, and one on `local-cluster`. Of what Kubernetes itself is asked for there
is a record, by a server that grants everything and starts nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from spark_tests.faults.clusters.application import SETTINGS
from spark_tests.faults.clusters.processes import (
    ROOT,
    SPARK_HOME,
    bare_python,
    environment,
    on_path,
    run,
    standalone_cluster,
)
from spark_tests.product.docs.blocks import DOCS, blocks

pytestmark = pytest.mark.cluster

JOB = ROOT / "examples" / "docker" / "job.py"
# In the order of the page: the package in the image, sent beside the job, sent by the driver.
IMAGE, FILES, CLIENT = (
    shlex.split(block.text.replace("\\\n", " "))
    for block in blocks(DOCS / "guide" / "on-kubernetes.md")
    if block.text.startswith("spark-submit")
)
# What the page calls the wheel: Python imports from archives of that name.
ARCHIVE = FILES[FILES.index("--py-files") + 1]
# What says where a program runs in Kubernetes; all else of a command stays.
ONLY_THERE = ("spark.kubernetes.", "spark.driver.host=", "spark.driver.port=")
ROWS = 857  # of 1000, without those of the customer that is deleted


def on(master: str, command: list[str], table: Path, archive: Path) -> list[str]:
    """A command of the page, for another master, with files of this machine."""
    there = {
        "spark-submit": str(SPARK_HOME / "bin" / "spark-submit"),
        "local:///opt/job.py": str(JOB),
        "job.py": str(JOB),
        "s3a://lake/orders": str(table),
        ARCHIVE: str(archive),
    }
    words: list[str] = []
    rest = iter(command)
    for word in rest:
        if word in ("--master", "--deploy-mode"):
            next(rest)
        elif word == "--conf":
            setting = next(rest)
            words += [] if setting.startswith(ONLY_THERE) else [word, setting]
        else:
            words.append(there.get(word, word))
    assert not [word for word in words if "k8s" in word or "s3a:" in word]
    settings = {**SETTINGS, "spark.eventLog.enabled": "false"}
    return [
        words[0],
        "--master",
        master,
        *(f"--conf={name}={settings[name]}" for name in settings),
        *words[1:],
    ]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The package as a wheel has it, under a name that Python imports from on executors."""
    made = tmp_path / ARCHIVE
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted((ROOT / "delta_ds").rglob("*")):
            if file.suffix in (".py", ".java", ".typed"):
                archive.write(file, file.relative_to(ROOT))
    return made


def submit(command: list[str], env: dict[str, str], folder: Path) -> str:
    done = run(command, env, folder=folder)
    assert done.code == 0, done.err[-4000:]
    return done.out


def python_of_image(folder: Path, *, package: bool) -> dict[str, str]:
    """The environment of processes in an image, with this package or without it."""
    python = bare_python(folder)
    if package:
        shutil.copytree(ROOT / "delta_ds", next(folder.glob("lib/python*/site-packages")) / "delta_ds")
    # Users of images often have no folder of their own.
    return environment(package=False, PYSPARK_PYTHON="python3", PATH=on_path(python), HOME="/nonexistent")


def test_the_job_of_the_image_runs_twice_and_has_the_same_rows(tmp_path: Path, archive: Path) -> None:
    there = python_of_image(tmp_path / "python", package=True)
    table = tmp_path / "orders"
    with standalone_cluster(tmp_path, there) as cluster:
        for _ in range(2):
            told = submit(on(cluster.url, IMAGE, table, archive), there, tmp_path)
            assert f"{table}: {ROWS} rows on spark" in told
    told = submit(on("local-cluster[2,1,1024]", IMAGE, table, archive), there, tmp_path)
    assert f"{table}: {ROWS} rows on local-cluster" in told


def test_the_package_is_sent_to_images_without_it(tmp_path: Path, archive: Path) -> None:
    there = python_of_image(tmp_path / "python", package=False)
    table = tmp_path / "orders"
    with standalone_cluster(tmp_path, there) as cluster:
        told = submit(on(cluster.url, FILES, table, archive), there, tmp_path)
        assert f"{table}: {ROWS} rows on spark" in told
        # The driver is this process's Python, which has the package; executors get it from the driver.
        driver = environment(
            PYSPARK_DRIVER_PYTHON=sys.executable, PYSPARK_PYTHON="python3", PATH=os.environ["PATH"]
        )
        told = submit(on(cluster.url, CLIENT, table, archive), driver, tmp_path)
        assert f"{table}: {ROWS} rows on spark" in told


class Kubernetes(BaseHTTPRequestHandler):
    """Grants what it is asked for, and keeps it; nothing is started."""

    made: list[dict[str, Any]]

    def do_GET(self) -> None:
        self._answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked["metadata"] |= {"uid": f"uid-{len(self.made)}", "resourceVersion": "1"}
        self.made.append(asked)
        self._answer(201, asked)

    do_PATCH = do_PUT = do_POST

    def _answer(self, status: int, found: dict[str, Any]) -> None:
        text = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@contextmanager
def recorded() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of such a server, and what it was asked to make."""
    made: list[dict[str, Any]] = []
    handler = type("Recorded", (Kubernetes,), {"made": made})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"k8s://http://127.0.0.1:{server.server_address[1]}", made
        server.shutdown()


@pytest.mark.parametrize("command", [IMAGE, FILES])
def test_spark_asks_kubernetes_for_a_driver_that_runs_the_job(
    command: list[str], tmp_path: Path, archive: Path
) -> None:
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    with recorded() as (master, made):
        words = [word.replace("s3a://lake/uploads", uploads.as_uri()) for word in command]
        words[0] = str(SPARK_HOME / "bin" / "spark-submit")
        words[words.index("--master") + 1] = master
        words = [{"job.py": str(JOB), ARCHIVE: str(archive)}.get(word, word) for word in words]
        # What the page says of jobs that were written for delta-spark.
        words.insert(1, "--conf=spark.pyspark.driver.python=pydelta-python")
        words.insert(1, "--conf=spark.kubernetes.submission.waitAppCompletion=false")
        submit(words, environment(package=False), tmp_path)
    (pod,) = [one for one in made if one["kind"] == "Pod"]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == next(
        word.partition("=")[2] for word in command if word.startswith("spark.kubernetes.container.image=")
    )
    assert pod["spec"]["serviceAccountName"] == "spark"
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert variables["PYSPARK_DRIVER_PYTHON"] == "pydelta-python"
    arguments = container["args"]
    assert arguments[0] == "driver"
    assert arguments[arguments.index("--class") + 1] == "org.apache.spark.deploy.PythonRunner"
    assert arguments[-2:] == ["s3a://lake/orders", "2026-01-31"]
    (settings,) = [
        one["data"]["spark.properties"] for one in made
        if one["kind"] == "ConfigMap" and "spark.properties" in one["data"]
    ]  # fmt: skip
    assert "spark.executor.instances=2" in settings
    if command is IMAGE:
        assert arguments[-3] == "local:///opt/job.py"
    else:
        uploaded = Path(urlsplit(arguments[-3]).path)
        assert uploads in uploaded.parents
        assert uploaded.read_text() == JOB.read_text()
        (sent,) = uploads.rglob(ARCHIVE)
        assert sent.read_bytes() == archive.read_bytes()
        assert ARCHIVE in settings
