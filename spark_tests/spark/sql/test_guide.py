"""What `docs/sql.md` shows works as it stands there, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sql.md"
_BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_STATEMENT = re.compile(r"(?P<text>.+?);(?: -- refused: (?P<condition>\w+))?\n", re.DOTALL)


def steps() -> list[tuple[str, str, str | None]]:
    """The language, the text and the condition of each step of the page."""
    found: list[tuple[str, str, str | None]] = []
    for language, block in _BLOCK.findall(PAGE.read_text()):
        if language == "python":
            found.append((language, block, None))
        else:
            assert _STATEMENT.sub("", block) == "", "a statement without its semicolon"
            found += [("sql", m["text"].strip(), m["condition"]) for m in _STATEMENT.finditer(block)]
    return found


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.catalog.currentDatabase()
    yield spark
    spark.sql(f"USE {before}")
    spark.sql("DROP SCHEMA IF EXISTS shop CASCADE")
    spark.sql("DROP VIEW IF EXISTS prices")


def test_the_page_does_what_it_says(session: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": session}
    for language, text, condition in steps():
        text = text.replace("/data/", f"{tmp_path}/")
        if language == "python":
            exec(compile(text, PAGE.name, "exec"), names)  # noqa: S102 - the page is ours
        elif condition is None:
            session.sql(text).collect()
        else:
            with pytest.raises(PySparkException) as raised:
                session.sql(text).collect()
            assert raised.value.getCondition().partition(".")[0] == condition, text
