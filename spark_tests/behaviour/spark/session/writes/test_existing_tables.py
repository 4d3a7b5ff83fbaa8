"""What is asked first, options or whether there is a table: as delta-spark 4.4 does by each way.

By `save` options count first; by ways that make a table of a name, Spark asks its catalog before anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError, InvalidOptionError, TableExistsError

WRONG = {"mergeSchema": "maybe"}


def _save(mode: str) -> Callable[[DataFrame, str, dict[str, str]], Any]:
    return lambda rows, path, options: rows.write.format("pydelta").mode(mode).options(**options).save(path)


def _save_as_table(mode: str) -> Callable[[DataFrame, str, dict[str, str]], Any]:
    def act(rows: DataFrame, path: str, options: dict[str, str]) -> None:
        rows.write.format("pydelta").mode(mode).options(**options).saveAsTable(f"pydelta.`{path}`")

    return act


def _create(rows: DataFrame, path: str, options: dict[str, str]) -> None:
    rows.writeTo(f"pydelta.`{path}`").options(**options).create()


WAYS: dict[str, tuple[Callable[[DataFrame, str, dict[str, str]], Any], type[DeltaError] | None]] = {
    "save, ignore": (_save("ignore"), InvalidOptionError),
    "save, errorifexists": (_save("errorifexists"), InvalidOptionError),
    "saveAsTable, ignore": (_save_as_table("ignore"), None),
    "saveAsTable, errorifexists": (_save_as_table("errorifexists"), TableExistsError),
    "writeTo.create": (_create, TableExistsError),
}


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_option_and_a_table_that_is_there(session: SparkSession, tmp_path: Path, way: str) -> None:
    path = str(tmp_path / "t")
    session.range(2).write.format("pydelta").save(path)
    act, wanted = WAYS[way]
    if wanted is None:
        act(session.range(9), path, WRONG)
    else:
        with pytest.raises(wanted):
            act(session.range(9), path, WRONG)
    assert DeltaLog(path).snapshot().version == 0


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_option_is_refused_where_there_is_no_table(
    session: SparkSession, tmp_path: Path, way: str
) -> None:
    with pytest.raises(InvalidOptionError):
        WAYS[way][0](session.range(9), str(tmp_path / "t"), WRONG)
    assert not (tmp_path / "t" / "_delta_log").exists()
