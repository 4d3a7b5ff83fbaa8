"""Every engine on every table: no worse than docs/engines.json says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_tests.engines.interop.engines.features import offered
from spark_tests.engines.interop.engines.matrix import RECORD, measure, worse

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("daft", reason="the engines are not installed here: run make engines")
    return measure(tmp_path_factory.mktemp("engines"))


@pytest.mark.parametrize(
    "number", range(len(offered())), ids=[f"{row.table}-{row.version}" for row in offered()]
)
def test_no_engine_reads_it_worse_than_recorded(number: int, measured: dict[str, Any]) -> None:
    row = measured["features"][number]
    assert worse({"features": [row]}, json.loads(RECORD.read_text())) == []
