"""The page of a table on an object store: read with the options of the command, which no answer shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.cli.arguments import open_log
from delta_ds.cli.ui.server import open_server
from delta_ds.cli.ui.view import TableView
from spark_tests.behaviour.cli.ui.serving import Page, serving

pytest.importorskip("moto.server", reason="moto[server] is not installed")

pytestmark = pytest.mark.stores


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = {"key": "AKIAHIDDEN", "secret": "verysecret", "endpoint_url": f"http://{host}:{port}"}
    s3fs.S3FileSystem(use_listings_cache=False, **found).mkdir("pages")
    yield found
    server.stop()


def test_a_table_on_a_store_has_a_page_without_its_secrets(options: dict[str, Any]) -> None:
    DeltaLog("s3://pages/t", options).write(pa.table({"id": [1, 2]}))
    given = [f"{name}={value}" for name, value in options.items()]
    with open_server(TableView(open_log("s3://pages/t", given)), "127.0.0.1", 0) as server, serving(server):
        page = Page(server)
        told = [page.ask("table"), page.ask("timeline"), page.ask("rows", version=0), page.ask("health")]
        assert told[0]["location"] == "s3://pages/t" and told[2]["rows"] == [["1"], ["2"]]
        told.append(page.ask("files", version=5, status=404))
        assert not any(secret in str(told) for secret in ("AKIAHIDDEN", "verysecret"))
