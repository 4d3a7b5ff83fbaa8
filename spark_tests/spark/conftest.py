"""A copy of the example table, which tests may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

SALES = Path(__file__).resolve().parents[2] / "examples" / "data" / "sales"


@pytest.fixture
def sales(tmp_path: Path) -> str:
    """The path of a copy of `examples/data/sales`: 8 versions, partitioned by country, with a change feed."""
    shutil.copytree(SALES, tmp_path / "sales")
    return str(tmp_path / "sales")
