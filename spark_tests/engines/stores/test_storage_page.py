"""Every example of docs/storage.md is run: on a local disk, on emulators, or as far as opening the store."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds.kernel.storage.open import open_storage
from spark_tests.engines.stores import test_servers
from spark_tests.engines.stores.signed_requests import SignedRequests
from spark_tests.product.docs import blocks as documents
from spark_tests.product.docs.blocks import DOCS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AZURE_ACCOUNT, AZURE_KEY = test_servers.AZURE_ACCOUNT, test_servers.AZURE_KEY
azurite_options, gcs_options = test_servers.azurite_options, test_servers.gcs_options

PAGE = DOCS / "storage.md"
_CONFIG = re.compile(r'\.config\("([^"]+)", "([^"]+)"\)')


def blocks(section: str) -> list[tuple[str, str, str]]:
    """Kind (empty, `session`, `spark` or `check`), address and code of each example of a section."""
    found = [block for block in documents.blocks(PAGE) if block.language == "python"]
    return [
        (next(iter(block.tags), ""), block.address, block.text) for block in found if block.section == section
    ]


def run(code: str, names: dict[str, Any], **replaced: str) -> None:
    for old, new in replaced.items():
        code = code.replace(old.replace("__", "-"), new)
    exec(compile(code, str(PAGE), "exec"), names)


def sections() -> list[str]:
    return list(dict.fromkeys(b.section for b in documents.blocks(PAGE) if b.language == "python"))


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith(("AWS_", "AZURE_", "GOOGLE_", "DELTA_DYNAMO_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_every_store_has_a_section_with_examples() -> None:
    assert sections() == ["Local disks", "S3", "Azure", "Google Cloud Storage", "HDFS"]
    assert {kind for name in sections() for kind, _, _ in blocks(name)} == {"", "session", "spark", "check"}


@pytest.mark.parametrize("section", sections())
def test_options_that_need_a_real_cloud_open_its_store(bare_environment: None, section: str) -> None:
    for kind, address, code in blocks(section):
        if kind != "check":
            continue
        # Each assignment by itself: they are alternatives.
        for one in re.split(r"^(?=storage_options = )", code, flags=re.MULTILINE):
            names: dict[str, Any] = {}
            run(one, names)
            if "storage_options" in names:
                assert open_storage(address, names["storage_options"]).url


def test_the_examples_of_local_disks_run(tmp_path: Path) -> None:
    for _, _, code in blocks("Local disks"):
        run(code, {}, **{"/data/events": str(tmp_path)})


@pytest.fixture(scope="module")
def server() -> Iterator[SignedRequests]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    server = SignedRequests()
    yield server
    server.stop()


def test_the_examples_of_s3_run(
    bare_environment: None, server: SignedRequests, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = f"bucket-{uuid.uuid4()}"
    server.make_bucket(bucket)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    replaced = {"my__bucket": bucket, "http://127.0.0.1:9000": server.url}
    names: dict[str, Any] = {"spark": spark}
    given = {"fs.s3a.endpoint": server.url, "fs.s3a.path.style.access": "true"}
    try:
        for kind, _, code in blocks("S3"):
            if kind == "session":  # the JVM is running: what the example sets for it is set on the session
                found = dict(_CONFIG.findall(code))
                assert found.pop("spark.jars.packages").endswith(f":{_hadoop(spark)}")
                given.update({name.removeprefix("spark.hadoop."): value for name, value in found.items()})
                for name, value in given.items():
                    spark.conf.set(name, value)
            elif kind != "check":
                run(code, names, **replaced)
        signers, _ = server.of(lambda: spark.read.format("pydelta").load(f"s3a://{bucket}/events").count())
        assert signers == {"MY_KEY"}
    finally:
        for name in given:
            spark.conf.unset(name)


def _hadoop(spark: SparkSession) -> str:
    return str(spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion())  # type: ignore[union-attr]


@pytest.mark.stores
def test_the_examples_of_azure_run(
    bare_environment: None, azurite_options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = re.search(r"BlobEndpoint=([^;]+)", azurite_options["connection_string"])
    assert endpoint
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint[1])
    replaced = {
        "my__container": "tables",
        "myaccount": AZURE_ACCOUNT,
        "MY_KEY": AZURE_KEY,
        "/events": f"/{uuid.uuid4()}",
    }
    for kind, _, code in blocks("Azure"):
        if kind == "":
            run(code, {}, **replaced)


@pytest.mark.stores
def test_the_examples_of_google_cloud_storage_run(
    bare_environment: None, gcs_options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_options["endpoint_url"])
    for kind, _, code in blocks("Google Cloud Storage"):
        if kind == "":
            run(code, {}, **{"my__bucket": "tables", "/events": f"/{uuid.uuid4()}"})
